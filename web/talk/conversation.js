// A conversation: its turns on the page, its data in the browser's storage, and the streams that are read for it.
// A turn that belongs to a task is always read from the server's log, from its first event or behind the last one that was
// read. Only Messages, which no server stores, come from the browser's own storage.
import { el, icon, icon_button, new_id, pause } from "../lib/dom.js";
import { join_deltas, run_batches } from "../lib/agui.js";
import { cancel_task, is_over, is_waiting, list_tasks, state_name, text_of } from "../lib/a2a.js";
import { HttpError } from "../lib/http.js";
import { announce, open_drawer } from "../lib/shell.js";
import { load_conversation, save_conversation } from "../lib/store.js";
import { file_chip } from "./parts.js";
import { tools_input } from "./tools.js";
import { copy_with, Turn } from "./turn.js";

const PATIENCE = [300, 700, 1500, 3000, 5000, 8000, 8000, 8000, 8000, 8000]; // ms before each attempt to read on
const MEDIA = { image: "image", audio: "audio", video: "video" };

export class Conversation {
  // hooks: on_change() (its list entry may differ now), on_running(is_running), on_edit(slot)
  constructor(agent, id, hooks) {
    Object.assign(this, { agent, id, hooks });
    this.slots = [];
    this.dropped = [];
    this.title = "";
    this.thread = el("div", { class: "thread" });
  }

  get running() { return this.slots.filter((s) => s.is_running); }
  get is_empty() { return !this.slots.length; }
  get last() { return this.slots.at(-1); }

  save() {
    if (!this.slots.length) return;
    const own = this.slots.filter((s) => !s.entry.is_foreign).map((s) => s.entry);
    this.title ||= (this.slots[0].entry.message?.text || this.slots[0].entry.message?.label || "Files").split("\n")[0].slice(0, 80);
    save_conversation({ id: this.id, agent: this.agent.id, title: this.title, updated: this.slots.reduce((t, s) => Math.max(t, s.entry.at ?? 0), 0) || Date.now(), entries: own, dropped: this.dropped });
  }

  // ---- turns on the page ---------------------------------------------------------------------------------------------

  add_slot(entry, index = this.slots.length) {
    entry.times ??= {};
    const slot = { entry, is_running: false, live: true, queue: [], events: [], read: 0, limit: 0 };
    const can_retry = () => this.can_retry(slot);
    slot.user = this.user_message(slot);
    slot.view = new Turn({
      agent: this.agent, times: entry.times, is_live: () => slot.live, state_before: () => this.state_before(slot),
      actions: {
        answer: (resume, label) => this.send({ resume, label }),
        results: (results) => this.send({ results, label: results.map((r) => `${r.name}: ${r.content}`).join("\n") }),
        get retry() { return can_retry() ? slot.retry : null; },
        get resend() { return entry.message?.text && !entry.message.files?.length ? slot.resend : null; },
        get inspect() { return entry.task ? slot.inspect : null; },
      },
    });
    slot.retry = () => this.retry(slot);
    slot.resend = () => this.send({ text: entry.message.text });
    slot.inspect = () => this.inspect(entry);
    slot.element = el("section", { class: "turn" }, slot.user, slot.view.element);
    const next = this.slots[index];
    this.slots.splice(index, 0, slot);
    if (next) next.element.before(slot.element);
    else this.thread.append(slot.element);
    return slot;
  }

  user_message(slot) {
    const { message } = slot.entry;
    if (!message) return null;
    const is_text = Boolean(message.text);
    return el("div", { class: "user-row" },
      el("div", { class: "user", "aria-label": "You" },
        message.files?.length > 0 && el("div", { class: "chips" }, message.files.map((f) => file_chip(f))),
        (is_text || message.label) && el("div", { class: is_text ? "user-text" : "user-text label" }, is_text ? message.text : message.label)),
      el("div", { class: "turn-actions" },
        icon_button("copy", "Copy your message", (e) => copy_with(e.currentTarget, message.text || message.label || "")),
        is_text && !slot.entry.is_foreign && icon_button("edit", "Edit and send again", () => this.hooks.on_edit(slot))));
  }

  state_before(slot) {
    const before = this.slots.slice(0, this.slots.indexOf(slot)).findLast((s) => s.view.state?.value !== undefined);
    return before?.view.state.value;
  }

  // The texts that ArrowUp recalls, the newest first.
  sent_texts() { return this.slots.map((s) => s.entry.message?.text).filter(Boolean).reverse(); }

  async inspect(entry) {
    const address = `/inspect/${encodeURIComponent(entry.task)}${entry.turn ? `?turn=${entry.turn}` : ""}`;
    await open_drawer("Inspector", address, async (element) => {
      const { mount_inspector } = await import("../inspect/inspect.js");
      return mount_inspector(element, { task: entry.task, turn: entry.turn ?? 0, params: new URLSearchParams(), is_drawer: true });
    });
  }

  // ---- sending -------------------------------------------------------------------------------------------------------

  // { text, files } or { resume, label } or { results, label }; replaces: the slot whose message was edited
  async send({ text = "", files = [], resume, results, label }, replaces = null) {
    const entry = { run: new_id(), at: Date.now(), status: "running", message: { id: new_id(), text, files, label } };
    const { earlier, running } = replaces ? this.drop_from(replaces) : { earlier: [], running: [] };
    if (!this.id) { this.id = new_id(); this.hooks.on_named(this.id); }
    this.last?.view.close_questions(results);
    const slot = this.add_slot(entry);
    const messages = [...earlier];
    if (results) for (const [i, r] of results.entries()) messages.push({ id: i === results.length - 1 ? entry.message.id : new_id(), role: "tool", toolCallId: r.id, content: r.content });
    else if (!resume) messages.push({ id: entry.message.id, role: "user", content: content_of(text, files) });
    slot.input = { threadId: this.id, runId: entry.run, messages, ...tools_input(this.agent.id), ...(resume ? { resume } : {}) };
    this.save();
    this.hooks.on_change();
    this.hooks.on_sent();
    if (running.length && !(await this.cancel_replaced(slot, running))) return;
    await this.follow(slot, undefined);
  }

  // A task that still works would accept the new message as one of its own. False: the user stopped the new run meanwhile.
  async cancel_replaced(slot, tasks) {
    slot.abort = new AbortController();
    this.set_running(slot, true);
    await Promise.allSettled(tasks.map((id) => cancel_task(this.agent.base, id)));
    return !slot.abort.signal.aborted;
  }

  // An edited message replaces what came after it. Returns the messages before it: agents with a history get them in place
  // of what they have; the first message starts another conversation. And the tasks that are at work for what is replaced.
  drop_from(slot) {
    const index = this.slots.indexOf(slot), gone = this.slots.splice(index);
    for (const s of gone) {
      s.abort?.abort();
      s.element.remove();
      if (s.entry.task) this.dropped.push(`${s.entry.task}/${s.entry.turn}`);
    }
    if (!index) {
      this.id = "";
      this.title = "";
      this.dropped = [];
    }
    const earlier = this.slots.flatMap((s) => {
      const answer = s.view.whole_text(), { message } = s.entry;
      return [message?.text && { id: message.id, role: "user", content: message.text }, answer && { id: `${s.entry.run}-answer`, role: "assistant", content: answer }].filter(Boolean);
    });
    return { earlier, running: [...new Set(gone.filter((s) => s.is_running && s.entry.task).map((s) => s.entry.task))] };
  }

  // Answers to a question and bytes of files are not stored: after a reload there may be nothing to send again.
  can_retry(slot) {
    const { message, is_foreign } = slot.entry, files = message?.files ?? [];
    return !is_foreign && (this.has_input(slot) || (Boolean(message?.text || files.length) && files.every((f) => f.data)));
  }
  // The same request can be sent again: the server stored nothing of its run.
  has_input(slot) { return slot === this.last && !slot.entry.task && Boolean(slot.input?.resume || slot.input?.messages.length); }

  async retry(slot) {
    const { entry } = slot;
    if (!this.can_retry(slot)) return;
    if (entry.task || slot !== this.last) return this.send({ text: entry.message.text, files: entry.message.files });
    const input = this.has_input(slot) ? slot.input : { messages: [{ id: entry.message.id, role: "user", content: content_of(entry.message.text, entry.message.files ?? []) }] };
    entry.run = new_id(); // nothing of it is on the server: the same turn again
    entry.status = "running";
    delete entry.events;
    slot.input = { ...input, tools: undefined, ...tools_input(this.agent.id), threadId: this.id, runId: entry.run };
    delete entry.times.run;
    slot.view.sent = performance.now();
    Object.assign(slot, { events: [], queue: [], read: 0, live: true });
    slot.view.reset();
    this.save();
    await this.follow(slot, undefined);
  }

  async stop() {
    const slot = this.running.at(-1);
    if (!slot) return;
    slot.view.doing("Canceling");
    if (!slot.entry.task) {
      slot.abort.abort();
      slot.view.close("canceled");
      slot.entry.events = [...join_deltas(slot.events), { type: "RUN_FINISHED", outcome: { type: "cancelled" } }];
      return this.ended(slot);
    }
    try { await cancel_task(this.agent.base, slot.entry.task); } catch (e) {
      if (slot.is_running) slot.view.doing(`Not canceled: ${e.message}`);
    }
  }

  // ---- reading -------------------------------------------------------------------------------------------------------

  // Reads the events of a turn to its end. A connection that is lost is opened again behind the last event that was read.
  async follow(slot, cursor) {
    const { entry, view } = slot;
    slot.abort = new AbortController();
    const { signal } = slot.abort;
    this.set_running(slot, true);
    const opened = ({ task, turn }) => {
      if (task) Object.assign(entry, { task, turn: turn || entry.turn });
      slot.opened = performance.now();
      if (task) this.save();
    };
    for (let attempt = 0; ;) {
      try {
        const input = entry.task ? { threadId: entry.thread ?? this.id, runId: entry.run } : slot.input;
        for await (const batches of run_batches(this.agent.base, input, { cursor, signal, on_open: opened })) {
          for (const { id, events } of batches) {
            if (signal.aborted) return;
            attempt = 0;
            if (slot.limit && id >= slot.limit) slot.is_over = true;
            if (slot.is_over) break;
            if (id) this.note_id(slot, id);
            if (id && entry.task) cursor = id;
            this.queue(slot, events);
          }
          if (!slot.live && performance.now() - slot.opened > 700) slot.live = true;
          if (slot.is_over) break;
        }
        if (slot.is_over) break;
        throw new Error("the stream ended early");
      } catch (e) {
        if (signal.aborted) return;
        this.flush(slot);
        if (e instanceof HttpError && e.status < 500) return slot.on_refused ? slot.on_refused(e) : this.refused(slot, e);
        if (!entry.task && slot.events.some((x) => x.type !== "RUN_STARTED")) return this.cut_off(slot);
        if (attempt >= PATIENCE.length) return this.lost(slot);
        view.doing("Connection lost, trying again");
        await pause(PATIENCE[attempt++], signal);
        if (signal.aborted) return;
        if (cursor === undefined) { cursor = "0"; view.reset(); slot.events = []; }
        view.doing("Connection lost, trying again");
      }
    }
    this.flush(slot);
    if (view.outcome === "running") { view.close("done"); view.show_foot(); } // its task went on with the next message
    await this.ended(slot);
  }

  // Messages that a working task accepts start turns of their own in the same log: each event is shown in one of them.
  note_id(slot, id) {
    slot.read = id;
    if (slot.entry.first || !slot.entry.task) return;
    slot.entry.first = id;
    const before = this.slots.slice(0, this.slots.indexOf(slot)).findLast((s) => s.entry.task === slot.entry.task);
    if (!before) return;
    before.limit = id;
    if (before.is_running) this.cut_before(before);
  }
  async cut_before(slot) {
    slot.abort.abort();
    this.flush(slot);
    if (slot.read >= slot.limit) return this.read_again(slot);
    slot.view.close("done");
    slot.view.show_foot();
    await this.ended(slot);
  }
  read_again(slot) {
    slot.view.reset();
    slot.events = [];
    slot.queue = [];
    slot.is_over = false;
    return this.follow(slot, "0");
  }

  queue(slot, events) {
    slot.queue.push(...events);
    if (!slot.entry.task) slot.events.push(...events);
    if (events.some((e) => e.type === "RUN_FINISHED" || e.type === "RUN_ERROR")) slot.is_over = true;
    if (slot.waits) return;
    slot.waits = true;
    const run = () => { slot.waits = false; this.flush(slot); };
    if (document.hidden) setTimeout(run, 50);
    else requestAnimationFrame(run);
  }
  flush(slot) {
    if (!slot.queue.length) return;
    const events = join_deltas(slot.queue);
    slot.queue = [];
    slot.view.feed(events);
  }

  refused(slot, error) {
    slot.view.fail(error.message);
    slot.entry.events = [{ type: "RUN_ERROR", message: error.message, code: "failed" }];
    return this.ended(slot, "failed");
  }
  cut_off(slot) {
    slot.entry.events = join_deltas(slot.events);
    slot.view.fail("The connection was lost in the middle of this answer, and the server does not store it.", "cut-off");
    return this.ended(slot, "cut-off");
  }
  lost(slot) {
    slot.view.fail("The server does not answer.");
    return this.ended(slot, slot.entry.task ? "running" : "cut-off");
  }

  async ended(slot, status = "done") {
    const { entry, view } = slot;
    this.set_running(slot, false);
    entry.status = status;
    if (!entry.task && !entry.events) entry.events = join_deltas(slot.events);
    if (entry.task) delete entry.events;
    if (!entry.is_foreign) this.save();
    if (slot.live) this.announce_end(view);
    await this.read_state(slot);
    this.hooks.on_change();
  }

  set_running(slot, value) {
    slot.is_running = value;
    this.hooks.on_running(this.running.length > 0);
  }

  announce_end(view) {
    const verb = { waiting: "asks", "waiting-for-tools": "asks you to run a tool", canceled: "was canceled", failed: "failed", rejected: "refused", "cut-off": "was cut off" }[view.outcome] ?? "answered";
    const text = view.whole_text().slice(0, 300);
    announce(`${this.agent.name} ${verb}${text && !["canceled"].includes(view.outcome) ? `: ${text}` : "."}`);
  }

  // Does the task of the last turn wait for an answer? A question that is only text ends a run like any other.
  async read_state(slot) {
    if (slot !== this.last || !slot.entry.task || slot.view.outcome !== "done") return;
    try {
      const { tasks } = await list_tasks(this.agent.base, { contextId: this.id, historyLength: 0, pageSize: 20 });
      const task = tasks.find((t) => t.id === slot.entry.task);
      if (task && is_waiting(state_name(task)) && slot === this.last && !slot.is_running) slot.view.mark_waiting();
    } catch { /* the list shows what it knows */ }
  }

  // ---- reading it again ------------------------------------------------------------------------------------------------

  // After a reload, a link, or in a second tab. True: the conversation is known.
  async restore() {
    const stored = load_conversation(this.id);
    const { tasks } = await list_tasks(this.agent.base, { contextId: this.id, historyLength: 1000, pageSize: 100 });
    const own = stored?.entries ?? [];
    this.title = stored?.title ?? "";
    this.dropped = stored?.dropped ?? [];
    const foreign = this.find_foreign(own, tasks.reverse());
    for (const entry of merge_entries(own, foreign, tasks.map((t) => t.id))) this.add_slot(entry);
    for (const [i, slot] of this.slots.entries()) {
      const next = this.slots.slice(i + 1).find((s) => s.entry.task && s.entry.task === slot.entry.task);
      slot.limit = next?.entry.first ?? 0;
      slot.live = false;
    }
    const thread = foreign.length ? await this.read_thread(tasks) : null;
    for (const slot of [...this.slots]) {
      await this.restore_slot(slot, thread);
      if (slot !== this.last) slot.view.close_questions(); // at once: its form is not shown while the next turn is read
    }
    for (const slot of this.slots.slice(0, -1)) slot.view.close_questions();
    if (this.last && !this.last.is_running) await this.read_state(this.last);
    return own.length > 0 || tasks.length > 0;
  }

  // The turns of tasks that this browser did not start: another client did.
  find_foreign(own, tasks) {
    const known = new Set([...own.map((e) => `${e.task}/${e.turn}`), ...this.dropped]), found = [];
    for (const task of tasks) {
      const sent = (task.history ?? []).filter((m) => m.role === "ROLE_USER");
      for (const [i, m] of sent.entries()) {
        if (known.has(`${task.id}/${i + 1}`) || own.some((e) => e.message?.id === m.messageId)) continue;
        const files = (m.parts ?? []).filter((p) => "raw" in p || "url" in p).map((p) => ({ name: p.filename ?? "file", type: p.mediaType, size: Math.floor((p.raw?.length ?? 0) * 3 / 4) }));
        found.push({ is_foreign: true, task: task.id, turn: i + 1, is_last: i === sent.length - 1, state: state_name(task), message: { id: m.messageId, text: text_of(m), files, label: label_of(m) } });
      }
    }
    return found;
  }

  // The messages of the conversation, and a stream of its newest run if that is at work.
  async read_thread(tasks) {
    const thread = { messages: [], after: [], artifacts: new Map() };
    const withs = await list_tasks(this.agent.base, { contextId: this.id, historyLength: 0, includeArtifacts: true, pageSize: 50 }).catch(() => ({ tasks: [] }));
    for (const t of withs.tasks) thread.artifacts.set(t.id, (t.artifacts ?? []).filter((a) => (a.parts ?? []).some((p) => !("text" in p))));
    thread.is_at_work = tasks.some((t) => !is_over(state_name(t)) && !is_waiting(state_name(t)));
    thread.batches = run_batches(this.agent.base, { threadId: this.id, runId: "page" }, { path: "/connect" });
    for (;;) {
      const { value, done } = await thread.batches.next();
      if (done) break;
      for (const e of value.flatMap((batch) => batch.events)) {
        if (e.type === "MESSAGES_SNAPSHOT") thread.messages = e.messages;
        else thread.after.push(e);
      }
      if (thread.messages.length && thread.is_at_work) break; // the rest comes as it happens
    }
    return thread;
  }

  async restore_slot(slot, thread) {
    const { entry, view } = slot;
    if (entry.is_foreign) return this.restore_foreign(slot, thread);
    if (entry.events && entry.status !== "running") {
      view.feed(entry.events);
      if (entry.status === "cut-off") view.fail("The connection was lost in the middle of this answer, and the server does not store it.", "cut-off");
      else if (view.outcome === "running") view.close("done");
      view.show_foot(entry.events.at(-1));
      return;
    }
    const is_known = Boolean(entry.task);
    slot.input = { threadId: entry.thread ?? this.id, runId: entry.run, messages: [] };
    const was_running = entry.status === "running";
    const reading = this.follow_stored(slot);
    // a turn that is over is complete before the next one is read: state changes build on each other
    if (!was_running || !is_known) await reading;
  }

  async follow_stored(slot) {
    const { entry, view } = slot;
    let refusal = null;
    slot.on_refused = (e) => { refusal = e; };
    await this.follow(slot, "0");
    slot.on_refused = null;
    if (!refusal) return;
    this.set_running(slot, false);
    if (entry.task) return this.restore_trimmed(slot);
    if (entry.events) view.feed(entry.events);
    entry.status = "cut-off";
    view.fail("The page was closed in the middle of this answer, and the server does not store it.", "cut-off");
    this.save();
  }

  // The log of the run is not there any more; the messages of its task may be.
  async restore_trimmed(slot) {
    let messages = [];
    try { messages = this.slice_of((await (this.thread_again ??= this.read_thread([]))).messages, slot.entry.message?.id); } catch { /* shown below */ }
    slot.view.add_messages(messages);
    if (messages.length) { slot.view.close("done"); slot.view.show_foot(); } else slot.view.fail("The server does not have this answer any more.");
  }

  slice_of(messages, id) {
    const start = messages.findIndex((m) => m.id === id);
    if (start < 0) return [];
    const end = messages.findIndex((m, i) => i > start && m.role === "user");
    return messages.slice(start + 1, end < 0 ? undefined : end);
  }

  async restore_foreign(slot, thread) {
    const { entry, view } = slot;
    view.add_messages(this.slice_of(thread.messages, entry.message.id));
    if (entry.is_last) for (const a of thread.artifacts.get(entry.task) ?? []) view.put_artifact(a, false);
    if (slot !== this.last) { view.close("done"); return view.show_foot(); }
    view.feed(thread.after.filter((e) => e.type !== "RUN_STARTED"));
    if (thread.is_at_work && view.outcome === "running") this.follow_thread(slot, thread);
    else if (view.outcome === "running") { view.close("done"); view.show_foot(); }
  }
  async follow_thread(slot, thread) {
    slot.abort = new AbortController();
    this.set_running(slot, true);
    try {
      for await (const batches of { [Symbol.asyncIterator]: () => thread.batches }) {
        if (slot.abort.signal.aborted) return;
        this.queue(slot, batches.flatMap((batch) => batch.events));
      }
    } catch { /* what was read is shown */ }
    this.flush(slot);
    if (slot.view.outcome === "running") slot.view.close("done");
    slot.entry.task && slot.view.show_foot();
    await this.ended(slot);
  }

  // Another tab went on with this conversation.
  async catch_up() {
    const stored = load_conversation(this.id);
    if (!stored) return;
    for (const entry of stored.entries) {
      const slot = this.slots.find((s) => s.entry.run === entry.run);
      if (slot || !(entry.task || entry.status !== "running")) continue;
      this.last?.view.close_questions();
      const added = this.add_slot(entry);
      added.live = false;
      await this.restore_slot(added, null);
    }
  }

  // The page is closed: the received part of a Message is stored.
  store_unfinished() {
    for (const slot of this.running) if (!slot.entry.task) slot.entry.events = join_deltas(slot.events);
    if (this.running.length) this.save();
  }

  close() { for (const s of this.slots) s.abort?.abort(); }
}

function content_of(text, files) {
  if (!files.length) return text;
  const parts = files.map((f) => ({ type: MEDIA[f.type.split("/")[0]] ?? "document", source: { type: "data", value: f.data, mimeType: f.type }, metadata: { filename: f.name } }));
  return text ? [{ type: "text", text }, ...parts] : parts;
}

// A user message without text: decisions or results.
function label_of(message) {
  const data = (message.parts ?? []).map((p) => p.data).filter(Boolean);
  const approvals = data.filter((d) => d.type === "approval").map((d) => (d.approved ? "Approved" : "Rejected"));
  const results = data.flatMap((d) => d.tool_results ?? []).map((r) => `${r.name ?? "Result"}: ${typeof r.output === "string" ? r.output : JSON.stringify(r.output)}`);
  return [...approvals, ...results].join(", ") || (data.length ? JSON.stringify(data[0]).slice(0, 200) : "");
}

// Own entries keep their order; those of other clients come behind what their task or the one before has.
function merge_entries(own, foreign, task_order) {
  const list = [...own];
  for (const f of foreign) {
    const rank = task_order.indexOf(f.task);
    const index = list.findLastIndex((e) => e.task && (e.task === f.task ? (e.turn ?? 0) < f.turn : task_order.indexOf(e.task) < rank));
    list.splice(index + 1, 0, f);
  }
  return list;
}
