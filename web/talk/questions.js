// Requests of an agent to the user: calls to approve, choices, an address to sign in, a form; also the tools that the caller runs.
import { el, icon } from "../lib/dom.js";
import { json_tree, put_text, visible } from "../lib/tree.js";
import { form_of } from "./form.js";

// The card of all interrupts of a run. answer(resume, label) sends the answers when they are complete.
export function show_interrupts(interrupts, shown_text, answer) {
  const decided = new Map();
  const decide = (interrupt, label, payload) => {
    decided.set(interrupt.id, { label, resume: { interruptId: interrupt.id, status: "resolved", payload } });
    if (decided.size < interrupts.length) return;
    const all = interrupts.map((i) => decided.get(i.id));
    answer(all.map((d) => d.resume), all.map((d) => d.label).join(", "));
  };
  return el("section", { class: "questions", "aria-label": "The agent waits for your answer" },
    interrupts.map((i) => show_interrupt(i, shown_text, (label, payload) => decide(i, label, payload))));
}

function show_interrupt(interrupt, shown_text, decide) {
  const { approval, question, auth } = interrupt.metadata ?? {};
  const box = el("div", { class: "question" });
  const text = interrupt.message ?? question?.text ?? auth?.reason;
  if (text && !shown_text.includes(text)) box.append(put_text(el("p", { class: "question-text" }), text));
  const done = (label, payload) => {
    for (const c of box.querySelectorAll("button, input, textarea, select")) c.disabled = true;
    box.append(el("p", { class: "decision" }, icon("check"), label));
    decide(label, payload);
  };
  if (approval) approval_controls(box, approval, done);
  else if (Array.isArray(question?.choices)) choice_controls(box, question.choices, done);
  else if (auth || interrupt.reason === "a2a:auth_required") sign_in_controls(box, auth ?? {}, done);
  else if (interrupt.responseSchema) form_controls(box, interrupt.responseSchema, done);
  else if (!text) box.append(el("p", {}, "The agent waits for your answer."));
  return box;
}

function approval_controls(box, approval, done) {
  const name = visible(String(approval.tool ?? "a tool").slice(0, 200)), args = approval.arguments ?? {};
  const editor = el("textarea", { class: "mono", rows: 4, hidden: true, spellcheck: "false", "aria-label": `Arguments of ${name}` });
  const error = el("p", { class: "error small", role: "alert", hidden: true });
  editor.value = JSON.stringify(args, null, 2);
  const approve = () => {
    let changed = args;
    try { if (!editor.hidden) changed = JSON.parse(editor.value); } catch (e) { error.hidden = false; error.textContent = `The arguments are not JSON: ${e.message}`; return; }
    const is_changed = JSON.stringify(changed) !== JSON.stringify(args);
    done(`Approved ${name}`, is_changed ? { approved: true, arguments: changed } : { approved: true });
  };
  const edit = (e) => { editor.hidden = !editor.hidden; e.currentTarget.setAttribute("aria-expanded", String(!editor.hidden)); if (!editor.hidden) editor.focus(); };
  box.append(el("div", { class: "request" }, el("div", { class: "request-name" }, icon("tool"), name), json_tree(args)), editor, error,
    el("div", { class: "controls" },
      el("button", { type: "button", class: "primary approve", "aria-label": `Approve ${name}`, onclick: approve }, "Approve"),
      el("button", { type: "button", class: "danger reject", "aria-label": `Reject ${name}`, onclick: () => done(`Rejected ${name}`, { approved: false }) }, "Reject"),
      el("button", { type: "button", class: "edit-arguments", "aria-expanded": "false", onclick: edit }, "Edit arguments")));
}

const choice_controls = (box, choices, done) => box.append(el("div", { class: "controls", role: "group", "aria-label": "Choices" },
  choices.slice(0, 100).map((c) => el("button", { type: "button", class: "choice", onclick: () => done(String(c), { text: String(c) }) }, visible(String(c).slice(0, 500))))));

// A link only to a web address: the agent chose it.
function sign_in_controls(box, auth, done) {
  const is_web = /^https?:\/\//i.test(auth.url ?? "");
  box.append(el("div", { class: "controls" },
    is_web && el("a", { class: "button", href: auth.url, target: "_blank", rel: "noopener noreferrer" }, icon("link"), `Sign in at ${new URL(auth.url).host}`),
    auth.scheme && el("span", { class: "soft" }, `Scheme: ${visible(String(auth.scheme).slice(0, 200))}`),
    el("button", { type: "button", class: "primary done", onclick: () => done("Signed in", { text: "done" }) }, "Continue")));
}

function form_controls(box, schema, done) {
  const form = form_of(schema), error = el("p", { class: "error small", role: "alert", hidden: true });
  const submit = (e) => {
    e.preventDefault();
    try {
      const value = form.read();
      done(typeof value === "string" ? value : JSON.stringify(value), value);
    } catch (x) { error.hidden = false; error.textContent = x.message; }
  };
  box.append(el("form", { class: "answer-form", onsubmit: submit }, form.element, error, el("button", { class: "primary" }, "Send the answer")));
}

// The result of a tool that the caller runs. done(text): the content of the tool message.
export function result_form(name, schema, done) {
  const form = form_of(schema, undefined, "Result"), error = el("p", { class: "error small", role: "alert", hidden: true });
  const element = el("form", { class: "answer-form tool-result", "aria-label": `Result of ${name}` },
    el("p", {}, schema ? "The agent asks you to run this tool. Write its result." : "The agent asks you to run this tool. Write its result: text or JSON."), form.element, error,
    el("div", { class: "controls" }, el("button", { class: "primary" }, "Send the result")));
  element.addEventListener("submit", (e) => {
    e.preventDefault();
    try {
      const value = form.read();
      for (const c of element.querySelectorAll("button, input, textarea, select")) c.disabled = true;
      done(typeof value === "string" ? value : JSON.stringify(value));
    } catch (x) { error.hidden = false; error.textContent = x.message; }
  });
  return element;
}
