// One answer of the agent on the page. What it is doing (activity) and what it says (answer) are apart: a
// progress text is never part of the answer.
import { is_over, is_waiting, text_of } from "./a2a.js";
import { controls_of, question_of } from "./ask.js";
import { make } from "./make.js";

const WORDS = { COMPLETED: "", FAILED: "failed", CANCELED: "canceled", REJECTED: "rejected" };

export class Turn {
  // continues: it answers a message to a task that was there, whose snapshot comes first
  // answer(parts, label): sends the user's answer to a question
  constructor(talk, answer, continues = false) {
    this.talk = talk;
    this.answer_with = answer;
    this.continues = continues;
    this.box = make("article", { class: "agent", "aria-label": "Agent" });
    this.activity = make("div", { class: "activity", role: "status" });
    this.box.append(this.activity);
    talk.append(this.box);
    this.texts = new Map(); // artifact id -> what it says, in order of appearance
    this.shown = new Map(); // artifact id -> element of a file or of data
    this.calls = []; // of the agent's own tools
    this.state = "";
    this.task = this.context = this.cursor = null;
    this.doing("Waiting for the agent");
  }

  doing(text) {
    this.activity.textContent = text;
    this.activity.hidden = !text;
  }

  before(element) { this.activity.before(element); return element; }

  // Who reads further up is left there.
  take(one) {
    const near = this.talk.scrollHeight - this.talk.scrollTop - this.talk.clientHeight < 160;
    this.read(one);
    if (near) this.talk.scrollTop = this.talk.scrollHeight;
  }

  read({ id, event }) {
    if (id) this.cursor = id;
    if (event.message) this.take_message(event.message);
    else if (event.task) this.take_task(event.task);
    else if (event.artifactUpdate) this.take_artifact(event.artifactUpdate.artifact, event.artifactUpdate.append);
    else if (event.statusUpdate) this.take_status(event.statusUpdate.status, event.statusUpdate.metadata);
  }

  take_message(m) {
    this.context = m.contextId ?? this.context;
    this.texts.set("message", text_of(m));
    this.put_answer();
    this.put_files(m.parts ?? [], "message", false);
    this.state = "TASK_STATE_COMPLETED";
    this.doing("");
  }

  // A snapshot: everything so far, or a new task.
  take_task(t) {
    this.task = t.id;
    this.context = t.contextId;
    if (this.continues && !is_over(t.status.state)) { // what it asked and made before is on the page
      this.continues = false;
      return;
    }
    this.texts.clear();
    for (const a of t.artifacts ?? []) this.take_artifact(a, false);
    this.take_status(t.status, t.metadata);
  }

  take_artifact(a, append) {
    const text = text_of(a);
    if (text || this.texts.has(a.artifactId)) {
      this.texts.set(a.artifactId, append ? (this.texts.get(a.artifactId) ?? "") + text : text);
      this.put_answer();
    }
    this.put_files(a.parts ?? [], a.artifactId, append, a.name);
    this.doing("Answering");
  }

  take_status(status, metadata) {
    this.state = status.state;
    const said = text_of(status.message);
    if (is_over(this.state)) this.end(said, metadata);
    else if (is_waiting(this.state)) this.ask(status.message);
    else this.doing(indicator_of(status.message) || said || "Working");
  }

  // The last text has authority: most often it repeats what was streamed.
  end(said, metadata) {
    const name = this.state.replace("TASK_STATE_", "");
    this.doing("");
    if (name === "COMPLETED" && said && said !== this.whole()) {
      this.texts = new Map([["status", said]]);
      this.put_answer();
    } else if (name === "FAILED" || name === "REJECTED") {
      this.fail(said || metadata?.error || WORDS[name]);
    }
    if (WORDS[name]) this.before(make("div", { class: "outcome" }, WORDS[name]));
  }

  ask(message) {
    this.doing("");
    this.before(make("div", { class: "asks" }, text_of(message) || question_of(message) || "The agent needs an answer to go on."));
    for (const e of controls_of(message, this.answer_with)) this.before(e);
  }

  // The question was answered: its buttons are of no use any more.
  close_question() {
    for (const b of this.box.querySelectorAll(".controls button")) b.disabled = true;
  }

  fail(why) {
    this.doing("");
    this.before(make("div", { class: "error", role: "alert" }, why));
  }

  whole() { return [...this.texts.values()].filter(Boolean).join("\n\n"); }

  put_answer() {
    this.answer ??= this.before(make("div", { class: "answer" }));
    this.answer.textContent = this.whole();
  }

  // AG-UI's events of one call. A client that connects in the middle gets the start of an open call again.
  take_call(e) {
    const at = this.calls.findLastIndex((c) => c.id === e.toolCallId), call = this.calls[at];
    if (e.type === "TOOL_CALL_START" && (!call || call.result !== undefined))
      this.put_call(this.calls.length, { id: e.toolCallId, name: e.toolCallName, args: "" });
    else if (call && e.type === "TOOL_CALL_ARGS") this.put_call(at, { args: call.args + e.delta });
    else if (call && e.type === "TOOL_CALL_RESULT") this.put_call(at, { result: e.content });
  }

  // The calls are above the answer, in their order. The same call again changes only its texts.
  put_call(at, change) {
    if (!this.tools) this.box.prepend((this.tools = make("section", { class: "tools", "aria-label": "Tool calls" })));
    const call = Object.assign((this.calls[at] ??= new_call(this.tools)), change);
    const is_done = call.result !== undefined;
    call.title.textContent = `Tool ${call.name}: ${is_done ? "done" : "running"}`;
    call.input.textContent = pretty(call.args);
    call.output.textContent = is_done ? pretty(call.result) : "";
    call.output.parentElement.hidden = !is_done;
  }

  put_files(parts, id, append, name) {
    const others = parts.filter((p) => !("text" in p));
    if (!others.length) return;
    let box = this.shown.get(id);
    if (!box) this.shown.set(id, (box = this.before(make("section", { class: "artifact" }))));
    if (!append) box.replaceChildren();
    if (name && !box.querySelector(".name")) box.append(make("div", { class: "name" }, name));
    for (const p of others) box.append("data" in p ? data(p) : file(p));
  }
}

// A progress text for people: a data part of this type.
function indicator_of(message) {
  const found = (message?.parts ?? []).find((p) => p.data?.type === "status-indicator");
  return found?.data.text ?? "";
}

function new_call(tools) {
  const title = make("summary"), input = make("pre", { tabindex: "0" }), output = make("pre", { tabindex: "0" });
  tools.append(make("details", { class: "tool" }, title, make("div", {}, "Arguments", input), make("div", {}, "Result", output)));
  return { title, input, output };
}

// Indented, if it is JSON; the text itself if not.
function pretty(text) {
  try { return JSON.stringify(typeof text === "string" ? JSON.parse(text) : text, null, 2); } catch { return text; }
}

const data = (p) => make("pre", { tabindex: "0" }, JSON.stringify(p.data, null, 2));

function file(p) {
  const type = p.mediaType ?? "application/octet-stream", name = p.filename || "file";
  const figure = make("figure");
  if (p.url !== undefined) {
    const safe = /^https?:/i.test(p.url);
    figure.append(make("figcaption", {}, safe ? make("a", { href: p.url, rel: "noopener noreferrer", target: "_blank" }, name) : `${name}: ${p.url}`, ` (${type})`));
    return figure;
  }
  const bytes = Uint8Array.from(atob(p.raw ?? ""), (c) => c.charCodeAt(0));
  // A blob has the origin of this page: opened in a tab, a document or script in it would run as ours.
  const is_image = /^image\/(png|jpeg|gif|webp)$/.test(type);
  const url = URL.createObjectURL(new Blob([bytes], { type: is_image ? type : "application/octet-stream" }));
  if (is_image) figure.append(make("img", { src: url, alt: name }));
  figure.append(make("figcaption", {}, make("a", { href: url, download: name }, name), ` (${type}, ${bytes.length} bytes)`));
  return figure;
}
