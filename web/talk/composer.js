// The input of the user: text, files, earlier messages.
import { $, el, icon, icon_button } from "../lib/dom.js";
import { file_chip, read_base64 } from "./parts.js";

const MAX_MB = 6, MAX_FILES = 16; // in base64 they fit into a message, which may have 8 MiB

// on_send({ text, files }), on_stop(), recall(n): the nth last text of the user, or undefined; buttons: beside "Attach files"
export function new_composer({ on_send, on_stop, recall, buttons = [] }) {
  let files = [], is_running = false, recalled = -1, editing = null;
  let reading = Promise.resolve(), n_reading = 0, generation = 0; // of files, one after the other
  const text = el("textarea", { id: "composer-text", rows: 1, placeholder: "Write to the agent", "aria-label": "Message", enterkeyhint: "send" });
  const picker = el("input", { type: "file", multiple: true, hidden: true, id: "composer-files" });
  const chips = el("div", { class: "chips", hidden: true });
  const note = el("div", { class: "editing", hidden: true }, "Editing an earlier message: its answer and everything after it are replaced.",
    el("button", { type: "button", onclick: () => end_edit(true) }, "Cancel"));
  const error = el("p", { class: "error small", role: "alert", hidden: true });
  const send = el("button", { id: "send", class: "primary round", "aria-label": "Send", title: "Send (Enter)" }, icon("send"));
  const stop = el("button", { id: "stop", type: "button", class: "round", "aria-label": "Stop", title: "Stop (Esc)", hidden: true, onclick: on_stop }, icon("stop"));
  const element = el("form", { id: "composer", autocomplete: "off" }, note, chips,
    el("div", { class: "composer-box" }, icon_button("attach", "Attach files", () => picker.click(), { id: "attach" }), picker, buttons, text, stop, send), error,
    el("p", { class: "composer-hint only-keyboard" }, el("kbd", {}, "Enter"), " sends, ", el("kbd", {}, "Shift"), "+", el("kbd", {}, "Enter"), " starts a line, ", el("kbd", {}, "Esc"), " stops, ", el("kbd", {}, "↑"), " recalls"));

  const grow = () => { text.style.height = "auto"; text.style.height = `${text.scrollHeight + 2}px`; };
  const is_empty = () => !text.value.trim() && !files.length;
  const show = () => {
    stop.hidden = !is_running;
    send.hidden = is_running && is_empty();
    send.disabled = is_empty();
    chips.hidden = !files.length;
  };
  const set_text = (value) => { text.value = value; grow(); show(); text.setSelectionRange(value.length, value.length); };

  function add_files(list) {
    const chosen = [...list], mine = generation; // the browser empties the list after its event
    error.hidden = true;
    n_reading++;
    reading = reading.then(() => read_files(chosen, mine)).finally(() => { n_reading--; });
    return reading;
  }

  async function read_files(chosen, mine) {
    const refuse = (text) => { error.hidden = false; error.textContent = text; };
    for (const f of chosen) {
      const total = files.reduce((n, x) => n + x.size, 0);
      if (files.length >= MAX_FILES || total + f.size > MAX_MB * 1e6) {
        refuse(`${f.name} was not attached: at most ${MAX_FILES} files of ${MAX_MB} MB together.`);
        break;
      }
      const data = await read_base64(f).catch(() => null);
      if (mine !== generation) return; // another conversation is shown
      if (data === null) { refuse(`${f.name} was not attached: the browser cannot read it.`); continue; }
      const file = { name: f.name || "pasted", type: f.type || "application/octet-stream", size: f.size, data };
      attach(file);
    }
    show();
    text.focus();
  }

  function attach(file) {
    files.push(file);
    const chip = file_chip(file, icon_button("close", `Remove ${file.name}`, () => { files = files.filter((x) => x !== file); chip.remove(); show(); text.focus(); }));
    chips.append(chip);
  }

  function submit() {
    if (n_reading) { reading.then(() => submit()); return; } // with the files that are being read
    if (is_empty()) return;
    const message = { text: text.value, files };
    files = [];
    chips.replaceChildren();
    recalled = -1;
    const replaces = editing;
    end_edit(false);
    set_text("");
    on_send(message, replaces);
  }

  function end_edit(clear) {
    editing = null;
    note.hidden = true;
    if (clear) { set_text(""); text.focus(); }
  }

  element.addEventListener("submit", (e) => { e.preventDefault(); submit(); });
  text.addEventListener("input", () => { recalled = -1; grow(); show(); });
  text.addEventListener("keydown", (e) => {
    if (e.isComposing) return;
    if (e.key === "Enter" && !e.shiftKey) { e.preventDefault(); submit(); }
    const is_own = recalled >= 0 && text.value === recall(recalled);
    if (e.key === "ArrowUp" && (!text.value || is_own)) {
      const before = recall(recalled + 1);
      if (before !== undefined) { e.preventDefault(); recalled++; set_text(before); }
    } else if (e.key === "ArrowDown" && is_own) {
      e.preventDefault();
      recalled--;
      set_text(recalled < 0 ? "" : recall(recalled));
    }
  });
  text.addEventListener("paste", (e) => {
    if (!e.clipboardData?.files.length) return;
    e.preventDefault();
    add_files(e.clipboardData.files);
  });
  picker.addEventListener("change", () => { add_files([...picker.files]); picker.value = ""; });
  show();

  return {
    element, add_files, set_text,
    focus: () => text.focus({ preventScroll: true }),
    set_running(value) { is_running = value; show(); },
    // What is written and attached, to be shown again with reset(); null: nothing that is not sent.
    draft: () => (editing || is_empty() ? null : { text: text.value, files }),
    reset(draft) {
      generation++;
      files = [];
      chips.replaceChildren();
      end_edit(false);
      recalled = -1;
      for (const f of draft?.files ?? []) attach(f);
      set_text(draft?.text ?? "");
    },
    edit(value, what) { editing = what; note.hidden = false; set_text(value); text.focus(); },
  };
}

// Files that are dropped anywhere on the element.
export function accept_drops(element, add_files) {
  const has_files = (e) => [...(e.dataTransfer?.types ?? [])].includes("Files");
  const over = (e) => { if (has_files(e)) { e.preventDefault(); element.classList.add("drop-here"); } };
  const leave = (e) => { if (!element.contains(e.relatedTarget)) element.classList.remove("drop-here"); };
  const drop = (e) => { if (!has_files(e)) return; e.preventDefault(); element.classList.remove("drop-here"); add_files([...e.dataTransfer.files]); };
  element.addEventListener("dragover", over);
  element.addEventListener("dragleave", leave);
  element.addEventListener("drop", drop);
  return () => { element.removeEventListener("dragover", over); element.removeEventListener("dragleave", leave); element.removeEventListener("drop", drop); };
}
