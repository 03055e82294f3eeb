// One answer of the agent on the page, built from AG-UI events. Progress and the answer are
// separate: a status text is never part of the answer. Events only add to the page; a text is never rendered again.
import { copy_text } from "../lib/clipboard.js";
import { el, icon, icon_button } from "../lib/dom.js";
import { new_markdown } from "../lib/markdown.js";
import { announce } from "../lib/shell.js";
import { AgentCard, ProgressCard, ReasoningCard, StateCard, time_text, ToolCard } from "./cards.js";
import { show_part } from "./parts.js";
import { result_form, show_interrupts } from "./questions.js";
import { tools_of } from "./tools.js";
import { json_tree, put_text, visible } from "../lib/tree.js";

const MAX_COPY_CHARS = 16 << 20, MAX_CARDS = 1000; // of a turn
const CLOCK_MS = 1000; // requests and frames take time, too

class TextBlock {
  constructor(id, name) {
    this.id = id;
    this.element = el("div", { class: "text-block" });
    if (name) this.element.append(el("h3", { class: "artifact-name" }, visible(name.slice(0, 200))));
    this.body = el("div", { class: "markdown" });
    this.element.append(this.body);
    this.markdown = new_markdown(this.body);
    this.waiting = [];
    this.pieces = [];
  }
  append(delta) { this.waiting.push(delta); }
  // Another text in place of this one: the agent's last word differs from what it had streamed.
  replace(text) {
    if (this.text === text) return;
    this.body.replaceChildren();
    this.markdown = new_markdown(this.body);
    this.pieces = [];
    this.waiting = [text];
    this.is_over = false;
    this.end();
  }
  flush() {
    if (!this.waiting.length) return;
    const text = this.waiting.join("");
    this.waiting = [];
    this.pieces.push(text);
    this.markdown.append(text);
  }
  end() { this.flush(); if (!this.is_over) this.done = this.markdown.end(); this.is_over = true; }
  get text() { return this.pieces.join("") + this.waiting.join(""); }
}

export class Turn {
  // times: measured in this browser, stored with the conversation; is_live(): the events are new, not read again
  // actions: answer(resume, label), results(list), retry(), inspect()
  constructor({ agent, times = {}, is_live = () => true, actions, state_before }) {
    Object.assign(this, { agent, times, is_live, actions, state_before });
    this.activity = el("div", { class: "activity" }, el("span", { class: "spinner", "aria-hidden": "true" }), el("span", { class: "activity-text" }));
    this.body = el("div", { class: "turn-body" });
    this.foot = el("footer", { class: "turn-foot" });
    this.element = el("article", { class: "agent", "aria-label": agent.name, "aria-busy": "true" }, el("h2", { class: "visually-hidden" }, visible(agent.name)), this.body, this.activity, this.foot);
    this.sent = performance.now();
    this.reset();
  }

  reset() {
    this.body.replaceChildren();
    this.foot.replaceChildren();
    this.texts = new Map();
    this.reasoning = new Map();
    this.tools = new Map();
    this.agents = new Map();
    this.artifacts = new Map();
    this.activities = new Map();
    this.dirty = new Set();
    this.state = this.progress = null;
    this.outcome = "running";
    this.element.setAttribute("aria-busy", "true");
    this.n_cards = 0;
    this.more = null;
    this.doing("Waiting for the agent");
  }

  doing(text) {
    this.activity.lastChild.textContent = visible(text);
    this.activity.hidden = !text;
  }

  // An agent may send any number of things; all of them are in the inspector.
  put(e, element, parent = this.place(e)) {
    if (++this.n_cards <= MAX_CARDS) return parent.append(element);
    this.more ??= this.body.appendChild(el("p", { class: "soft small" }));
    this.more.textContent = `${this.n_cards - MAX_CARDS} more parts of this answer are not shown here. Inspect shows all events.`;
  }

  // Where the events of a speaker go: the turn, or the card of a sub-agent.
  place(e) { return this.agents.get(e.subagentRunId)?.body ?? this.body; }

  feed(events) {
    for (const e of events) this.feed_one(e);
    for (const block of this.dirty) block.flush();
    this.dirty.clear();
  }

  feed_one(e) {
    const handler = this[e.type];
    if (HANDLED.has(e.type)) handler.call(this, e);
  }

  // ---- text and reasoning ------------------------------------------------------------------------------------------

  RUN_STARTED(e) {
    this.started = e.timestamp;
    this.doing("Waiting for the agent");
  }
  STEP_STARTED(e) { if (!e.subagentRunId) this.doing(e.stepName === "working" ? "Working" : e.stepName); }

  TEXT_MESSAGE_START(e) {
    if (this.texts.has(e.messageId) || (e.role && e.role !== "assistant")) return;
    const name = e.metadata?.["dragoman:artifact"]?.name;
    const block = new TextBlock(e.messageId, name && !["Answer", "Stream Delta"].includes(name) ? name : "");
    this.texts.set(e.messageId, block);
    this.put(e, block.element);
    this.doing("Answering");
  }
  TEXT_MESSAGE_CONTENT(e) {
    if (!this.texts.has(e.messageId)) this.TEXT_MESSAGE_START({ ...e, role: "assistant" });
    const block = this.texts.get(e.messageId);
    if (!block) return;
    block.append(e.delta);
    this.dirty.add(block);
  }
  TEXT_MESSAGE_END(e) { this.texts.get(e.messageId)?.end(); }

  REASONING_MESSAGE_START(e) {
    if (this.reasoning.has(e.messageId)) return;
    const card = new ReasoningCard();
    this.reasoning.set(e.messageId, card);
    this.put(e, card.element);
    this.doing("Thinking");
  }
  REASONING_MESSAGE_CONTENT(e) {
    this.REASONING_MESSAGE_START(e);
    this.reasoning.get(e.messageId).append(e.delta);
  }
  REASONING_MESSAGE_END(e) {
    const card = this.reasoning.get(e.messageId);
    if (card) card.end(this.measure(e.messageId, card.started));
  }

  // Of this browser's clock; unknown for what another client saw.
  measure(key, started) {
    if (this.is_live() && this.times[key] === undefined) this.times[key] = Math.round(performance.now() - started);
    return this.times[key];
  }

  // ---- tools -------------------------------------------------------------------------------------------------------

  TOOL_CALL_START(e) {
    if (this.tools.has(e.toolCallId)) return;
    const card = new ToolCard(e.toolCallId, e.toolCallName);
    this.tools.set(e.toolCallId, card);
    this.put(e, card.element);
    this.doing(`Using ${e.toolCallName}`);
  }
  TOOL_CALL_ARGS(e) { this.tools.get(e.toolCallId)?.append_arguments(e.delta); }
  TOOL_CALL_END(e) { this.tools.get(e.toolCallId)?.end_arguments(); }
  TOOL_CALL_RESULT(e) {
    const card = this.tools.get(e.toolCallId);
    if (card) card.result(e.content, this.measure(e.toolCallId, card.started));
  }

  // ---- state, progress, sub-agents -------------------------------------------------------------------------------------

  state_card(e) {
    if (!this.state) this.put(e, (this.state = new StateCard()).element);
    this.dirty.add(this.state);
    return this.state;
  }
  STATE_SNAPSHOT(e) { this.state_card(e).snapshot(e.snapshot); }
  STATE_DELTA(e) { this.state_card(e).delta(e.delta, this.state_before?.()); }

  ACTIVITY_SNAPSHOT(e) {
    if (e.activityType === "a2a-status") return this.indicate(e);
    let card = this.activities.get(e.messageId);
    if (!card) {
      this.activities.set(e.messageId, (card = el("section", { class: "artifact" })));
      this.put(e, card);
    }
    card.replaceChildren(el("h3", { class: "artifact-name" }, visible(e.activityType.slice(0, 200))), json_tree(e.content));
  }
  indicate(e) {
    const text = String(e.content?.text ?? "").slice(0, 300), agent = [...this.agents.values()].findLast((a) => a.name === e.content?.agent?.name);
    if (!text) return;
    this.doing(text);
    if (this.is_live()) announce(text);
    if (agent) return agent.card.note(text);
    if (!this.progress) this.body.append((this.progress = new ProgressCard()).element);
    this.progress.add(text);
  }

  SUBAGENT_STARTED(e) {
    if (this.agents.has(e.subagentRunId)) return;
    const card = new AgentCard(e.name, e.description), parent = this.agents.get(e.parentSubagentRunId)?.body ?? this.body;
    this.agents.set(e.subagentRunId, { card, body: card.body, name: e.name });
    this.put(e, card.element, parent);
  }
  SUBAGENT_FINISHED(e) {
    const agent = this.agents.get(e.subagentRunId);
    if (!agent) return;
    if (e.result !== undefined && e.result !== null) agent.body.append(json_tree(e.result));
    agent.card.end("", this.measure(e.subagentRunId, agent.card.started));
  }
  SUBAGENT_ERROR(e) {
    const agent = this.agents.get(e.subagentRunId);
    agent?.body.append(put_text(el("p", { class: "error" }), e.message));
    agent?.card.end("failed");
  }

  // ---- files and data ------------------------------------------------------------------------------------------------

  CUSTOM(e) {
    if (e.name === "dragoman:not-stored") this.body.append(el("p", { class: "soft small" }, "A part of this answer was too large for the browser to store."));
    const { progress } = (e.name === "dragoman:metadata" && e.value) || {};
    if (typeof progress === "number") this.doing(`Working, ${progress} %`);
    if (e.name === "dragoman:artifact" && e.value?.artifact) this.put_artifact(e.value.artifact, e.value.append, e);
  }
  put_artifact(artifact, append, e = {}) {
    let box = this.artifacts.get(artifact.artifactId);
    if (!box) {
      this.artifacts.set(artifact.artifactId, (box = el("section", { class: "artifact" })));
      this.put(e, box);
    }
    if (!append) box.replaceChildren();
    const parts = (artifact.parts ?? []).map(show_part).filter(Boolean), is_file = (artifact.parts ?? []).some((p) => p.filename === artifact.name);
    if (artifact.name && !is_file && !box.querySelector(".artifact-name")) box.prepend(el("h3", { class: "artifact-name" }, visible(artifact.name.slice(0, 200))));
    box.append(...parts);
  }

  // The messages so far, in place of what was streamed.
  MESSAGES_SNAPSHOT(e) {
    const mine = e.messages.slice(e.messages.findLastIndex((m) => m.role === "user") + 1), texts = new Map(mine.filter((m) => m.role === "assistant").map((m) => [m.id, content_text(m)]));
    for (const [id, block] of this.texts) {
      if (texts.get(id)) block.replace(texts.get(id));
      else { block.element.remove(); this.texts.delete(id); }
    }
    this.add_messages(mine);
  }

  // ---- messages of a thread that another client wrote --------------------------------------------------------------------

  add_messages(messages) {
    for (const m of messages) {
      if (m.role === "reasoning") this.feed([{ type: "REASONING_MESSAGE_CONTENT", messageId: m.id, delta: m.content ?? "" }, { type: "REASONING_MESSAGE_END", messageId: m.id }]);
      if (m.role === "assistant") {
        const text = content_text(m);
        if (text && !this.texts.has(m.id)) this.feed([{ type: "TEXT_MESSAGE_CONTENT", messageId: m.id, delta: text }]);
        for (const c of m.toolCalls ?? []) {
          if (this.tools.has(c.id)) continue;
          this.feed([{ type: "TOOL_CALL_START", toolCallId: c.id, toolCallName: c.function.name }, { type: "TOOL_CALL_ARGS", toolCallId: c.id, delta: c.function.arguments }, { type: "TOOL_CALL_END", toolCallId: c.id }]);
        }
      }
      if (m.role === "tool") this.feed([{ type: "TOOL_CALL_RESULT", toolCallId: m.toolCallId, content: m.content }]);
      if (m.role === "activity") this.ACTIVITY_SNAPSHOT({ messageId: m.id, activityType: m.activityType, content: m.content });
    }
  }

  // ---- the end ---------------------------------------------------------------------------------------------------------

  RUN_FINISHED(e) {
    const kind = e.outcome?.type ?? "success";
    if (kind === "interrupt") this.ask(e.outcome.interrupts ?? []);
    else if (e.outcome?.pendingToolCallIds?.length) this.wait_for_tools(e.outcome.pendingToolCallIds);
    else if (kind === "cancelled") this.close("canceled");
    else this.close("done");
    this.show_foot(e);
  }
  RUN_ERROR(e) {
    const kind = e.code === "rejected" ? "rejected" : e.code === "cancelled" ? "canceled" : "failed";
    if (kind === "canceled") this.close("canceled");
    else this.fail(e.message, kind);
    this.show_foot(e);
  }

  // kind: "failed", "rejected", "cut-off"
  fail(message, kind = "failed") {
    this.close(kind);
    const title = { failed: "Failed", rejected: "Refused", "cut-off": "Cut off" }[kind];
    this.body.append(el("div", { class: `failure ${kind}`, role: this.is_live() ? "alert" : null },
      el("div", {}, el("strong", { class: "outcome" }, title), " ", put_text(el("span", { class: "reason" }), message)),
      this.actions.retry && el("button", { type: "button", class: "retry", onclick: () => this.actions.retry() }, icon("retry"), "Retry")));
  }

  close(outcome) {
    this.outcome = outcome;
    this.doing("");
    for (const t of this.texts.values()) t.end();
    // long texts are shown in several frames
    Promise.all([...this.texts.values()].map((t) => t.done)).then(() => { if (this.outcome !== "running") this.element.setAttribute("aria-busy", "false"); });
    for (const c of this.reasoning.values()) if (c.element.classList.contains("is-live")) c.end(0);
    if (outcome !== "waiting-for-tools") for (const c of this.tools.values()) if (!c.has_result) c.close();
    for (const a of this.agents.values()) if (a.card.element.classList.contains("is-live")) a.card.end("");
    if (outcome === "canceled") this.body.append(el("p", { class: "outcome soft" }, "Canceled"));
  }

  ask(interrupts) {
    this.close("waiting");
    this.questions = show_interrupts(interrupts, this.whole_text(), (resume, label) => this.actions.answer(resume, label));
    this.body.append(this.questions);
  }

  wait_for_tools(ids) {
    const results = new Map(), offered = tools_of(this.agent.id);
    for (const id of ids) {
      const card = this.tools.get(id), tool = offered.find((t) => t.name === card?.name);
      if (!card) continue;
      card.wait_for(result_form(card.name, tool?.returns, (content) => {
        results.set(id, { id, name: card.name, content });
        if (results.size === ids.length) this.actions.results(ids.map((i) => results.get(i)));
        else card.status.textContent = "waits for the others";
      }), tool?.description);
    }
    this.close("waiting-for-tools");
  }

  // A text-only question of the agent: its task waits.
  mark_waiting() {
    if (this.outcome !== "done") return;
    this.outcome = "waiting";
    this.body.lastElementChild?.classList.add("asks");
    this.body.append(el("p", { class: "waits soft small" }, "The agent waits for your answer."));
  }

  // The conversation went on: nothing of this turn can be answered any more.
  close_questions(results = []) {
    for (const c of this.element.querySelectorAll(".questions button, .questions input, .questions textarea, .questions select")) c.disabled = true;
    for (const w of this.element.querySelectorAll(".waits")) w.remove();
    for (const r of results) this.tools.get(r.id)?.result(r.content);
    for (const card of this.tools.values()) if (!card.has_result) card.close();
  }

  whole_text() {
    const texts = [...this.texts.values()].map((t) => t.text).filter(Boolean).join("\n\n");
    return texts.slice(0, MAX_COPY_CHARS);
  }

  // The log starts with the first event, so an agent that is silent at first took longer for the one who waited.
  run_time(logged) {
    const waited = this.measure("run", this.sent) ?? 0;
    return waited > logged + CLOCK_MS ? waited : logged;
  }

  show_foot({ timestamp, usage } = {}) {
    const facts = [];
    if (this.started && timestamp >= this.started) facts.push(el("span", { class: "fact time", title: "Time of the run" }, time_text(this.run_time(timestamp - this.started))));
    for (const u of [usage ?? []].flat()) facts.push(usage_fact(u));
    this.foot.replaceChildren(el("span", { class: "turn-facts" }, facts),
      el("span", { class: "turn-actions" },
        icon_button("copy", "Copy the answer", (e) => copy_with(e.currentTarget, this.whole_text())),
        this.actions.resend && icon_button("retry", "Ask again", () => this.actions.resend()),
        this.actions.inspect && el("button", { type: "button", class: "inspect-turn", onclick: () => this.actions.inspect() }, icon("inspect"), "Inspect")));
  }
}

const content_text = (m) => (typeof m.content === "string" ? m.content : (m.content ?? []).map((p) => p.text ?? "").join(""));

function usage_fact(u) {
  const n = (v) => Number(v).toLocaleString("en");
  const parts = [u.inputTokens !== undefined && `${n(u.inputTokens)} in`, u.outputTokens !== undefined && `${n(u.outputTokens)} out`].filter(Boolean);
  if (!parts.length && u.totalTokens !== undefined) parts.push(`${n(u.totalTokens)} tokens`);
  const more = [u.reasoningTokens !== undefined && `${n(u.reasoningTokens)} reasoning`, u.cachedInputTokens !== undefined && `${n(u.cachedInputTokens)} cached`].filter(Boolean);
  return el("span", { class: "fact usage" }, `${parts.join(" / ")} tokens`, more.length > 0 && ` (${more.join(", ")})`, u.model && el("span", { class: "model" }, u.model));
}

export async function copy_with(button, text) {
  await copy_text(text);
  announce("Copied.");
  button?.replaceChildren(icon("check"));
  setTimeout(() => button?.replaceChildren(icon("copy")), 1500);
}

const HANDLED = new Set(["RUN_STARTED", "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "REASONING_MESSAGE_START",
  "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT",
  "STATE_DELTA", "ACTIVITY_SNAPSHOT", "SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR", "CUSTOM", "RUN_FINISHED", "RUN_ERROR"]);
