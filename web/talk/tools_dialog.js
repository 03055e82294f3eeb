// The button beside the message box that shows how many tools the page offers, and the dialog in which they are written.
import { el, icon, icon_button } from "../lib/dom.js";
import { announce } from "../lib/shell.js";
import { load_tools, on_tools_saved_elsewhere, save_tools } from "../lib/store.js";
import { visible } from "../lib/tree.js";
import { EXAMPLE, read_tools, tools_of } from "./tools.js";

export function new_tools_button() {
  let agent = null;
  const count = el("span", { class: "tools-count", "aria-hidden": "true", hidden: true });
  const element = icon_button("tool", "Tools", () => show_tools(agent, show), { id: "tools", "aria-haspopup": "dialog", disabled: true });
  element.append(count);
  const show = () => {
    const n = agent ? tools_of(agent.id).length : 0;
    const label = `Tools of this page: ${n === 0 ? "none offered" : n === 1 ? "1 offered" : `${n} offered`}`;
    element.setAttribute("aria-label", label);
    element.title = label;
    count.textContent = String(n);
    count.hidden = !n;
  };
  const stop = on_tools_saved_elsewhere(show);
  return { element, stop, show_for(shown) { agent = shown; element.disabled = false; show(); } };
}

function show_tools(agent, on_saved) {
  const name = visible(agent.name.slice(0, 200));
  const box = el("textarea", { id: "tools-text", class: "mono", rows: 14, spellcheck: "false", autocomplete: "off", "aria-describedby": "tools-error" });
  const error = el("p", { id: "tools-error", class: "error small", role: "alert", hidden: true });
  box.value = load_tools(agent.id);

  const show_error = (e) => {
    error.textContent = visible(e.message);
    error.hidden = false;
    box.setAttribute("aria-invalid", "true");
    box.focus();
    if (e.offset !== undefined) box.setSelectionRange(e.offset, e.offset + 1);
  };
  const clear_error = () => { error.hidden = true; box.removeAttribute("aria-invalid"); };
  // Adds the example to the tools that are there.
  const insert = () => {
    clear_error();
    try {
      const tools = read_tools(box.value);
      if (!tools.some((t) => t.name === EXAMPLE.name)) box.value = JSON.stringify([...tools, EXAMPLE], null, 2);
      box.focus();
      if (!tools.length) { box.setSelectionRange(0, 0); box.scrollTop = 0; } // its start
    } catch (e) { show_error(e); }
  };
  const save = (event) => {
    event.preventDefault();
    clear_error();
    try {
      const n = read_tools(box.value).length;
      save_tools(agent.id, box.value);
      on_saved();
      dialog.close();
      announce(n === 1 ? "1 tool is offered to the agent." : `${n} tools are offered to the agent.`);
    } catch (e) { show_error(e); }
  };

  const dialog = el("dialog", { class: "card-dialog tools-dialog", "aria-labelledby": "tools-title" },
    el("div", { class: "dialog-head" }, el("h2", { id: "tools-title" }, "Tools of this page"), icon_button("close", "Close", () => dialog.close())),
    el("p", {}, `The page offers these tools to ${name} with every message. If the agent calls one, the card of the call has a form for the result.`),
    el("form", { onsubmit: save },
      el("label", { for: "tools-text" }, "Tools (JSON)"), box, error,
      el("p", { class: "small" }, "An array of objects with ", el("code", {}, "name"), ", ", el("code", {}, "description"), ", ", el("code", {}, "parameters"), " (JSON Schema of the arguments) and ",
        el("code", {}, "returns"), " (JSON Schema of the result, for the form; it is not sent). This browser stores them for this agent."),
      el("div", { class: "controls" }, el("button", { class: "primary", id: "tools-save" }, icon("check"), "Save"), el("button", { type: "button", id: "tools-example", onclick: insert }, "Insert an example"))));
  box.addEventListener("input", clear_error);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  box.focus();
}
