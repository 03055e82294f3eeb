// Why text appears twice: one run, read by two clients, step by step. The records, the frames and the findings
// are the server's.
import { el, new_id } from "../lib/dom.js";
import { get_json } from "../lib/http.js";
import { announce, open_drawer, view_header } from "../lib/shell.js";
import { put_visible, visible } from "../lib/tree.js";
import { finding_card } from "../inspect/detail.js";
import { as_a2a, state_of } from "../inspect/record.js";
import { Inspector } from "../inspect/inspector.js";
import { StreamSource, TaskSource, name_of } from "../inspect/source.js";
import { READERS, data_of, naive_text } from "./readers.js";
import { RECORDINGS, stream_of } from "./recordings.js";

const PACE = 1100; // ms between two steps of a recording that plays

export function mount_compare(element) {
  const stop = new AbortController();
  let run = null, at = 0, timer = 0, chosen = RECORDINGS[0], loading = null;
  document.title = "Why text appears twice \u00b7 Dragoman";

  const choices = el("div", { class: "choices", role: "group", "aria-label": "The agent" });
  const about = el("p", { class: "soft" });
  const play = el("button", { type: "button", class: "button primary", onclick: () => (timer ? pause() : start()) }, "Play");
  const back = el("button", { type: "button", class: "button", "aria-label": "Previous event", onclick: () => { pause(); step(at - 1); } }, "\u2190");
  const next = el("button", { type: "button", class: "button", "aria-label": "Next event", onclick: () => { pause(); step(at + 1); } }, "\u2192");
  const place = el("span", { class: "soft place" });
  const inspect = el("button", { type: "button", class: "button", onclick: open_inspector }, "Inspect these records");
  const events = el("ol", { class: "events", "aria-label": "Events of the agent" });
  const naive = el("div", { class: "bubble bad", id: "naive" }), ours = el("div", { class: "bubble good", id: "ours" });
  const doing = el("p", { class: "doing", id: "doing" });
  const verdict_naive = el("p", { class: "verdict" }), verdict_ours = el("p", { class: "verdict" });
  const table = el("tbody"), findings = el("div", { class: "findings" }), problem = el("p", { class: "note error", role: "alert", hidden: true });
  const body = el("div", { class: "compare inspector", tabindex: "-1", onkeydown: key },
    el("section", { class: "intro" }, el("h2", {}, "Why does text appear twice?"),
      el("p", {}, "An agent sends its progress, pieces of its answer, and at the end the complete answer. A client that appends every text shows all three. ",
        el("a", { href: "https://github.com/a2aproject/A2A/blob/main/docs/topics/life-of-a-task.md", target: "_blank", rel: "noopener noreferrer" }, "A2A"), " has a place for each of them.")),
    choices, about, el("div", { class: "stepper" }, play, back, next, place, inspect), problem,
    el("div", { class: "exhibit" },
      el("section", { class: "side" }, el("h2", {}, "Status text as content"), el("p", { class: "soft small" }, "A client that appends every text part"), naive, verdict_naive),
      el("section", { class: "wire" }, el("h2", {}, "Events of the agent"), events),
      el("section", { class: "side" }, el("h2", {}, "Status as an indicator"), el("p", { class: "soft small" }, "useChat behind this server"), doing, ours, verdict_ours)),
    el("section", { class: "others" }, el("h2", {}, "The same run in every protocol"),
      el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Answers by protocol" }, el("table", {}, el("thead", {}, el("tr", {}, ["Protocol", "Answer", "Last indicator"].map((h) => el("th", { scope: "col" }, h)))), table))),
    el("section", { class: "advice" }, el("h2", {}, "Lint findings for the author of the agent"), findings));
  element.append(view_header("Compare"), el("div", { class: "compare-scroll" }, body));

  function build_choices() {
    const button = (r, action) => el("button", { type: "button", "data-run": r.id, "aria-pressed": "false", onclick: action }, r.name);
    choices.replaceChildren(...RECORDINGS.map((r) => button(r, () => choose(r))), button({ id: "live", name: "Live: the demo agent" }, run_live));
  }

  function mark(id, text) {
    for (const b of choices.children) b.setAttribute("aria-pressed", String(b.dataset.run === id));
    about.textContent = text;
  }

  async function choose(recording) {
    chosen = recording;
    mark(recording.id, recording.about);
    await load(new StreamSource(recording.name, new Blob([stream_of(recording)])));
    step(run?.records.length ?? 0);
  }

  // Everything about one run: records, the frames of each protocol by record, findings.
  async function load(source) {
    pause();
    loading?.abort();
    const mine = (loading = new AbortController()), { signal } = mine;
    stop.signal.addEventListener("abort", () => mine.abort());
    problem.hidden = true;
    try {
      const made = { source, records: [], frames: {}, tails: {}, findings: [] };
      for await (const line of source.records(signal, { follow: false })) made.records.push(JSON.parse(line));
      for (const format of Object.keys(READERS)) {
        made.frames[format] = new Map();
        for await (const { seq, frames } of source.column(format, 1, signal)) {
          if (seq === null) made.tails[format] = frames;
          else made.frames[format].set(seq, frames);
        }
      }
      made.findings = await source.findings(1, signal);
      if (signal.aborted) return;
      run = made;
      show_findings();
    } catch (e) {
      if (signal.aborted) return;
      problem.hidden = false;
      problem.textContent = e.status === 403 || e.status === 401 ? "You are not allowed to inspect records on this server, so the comparison cannot be shown. The setting inspect controls this." : e.message;
    }
  }

  function read(format, n) {
    const shown = { answer: "", doing: "" }, reader = READERS[format]();
    const feed = (frames) => { for (const o of data_of(frames ?? "")) reader(o, shown); };
    for (const r of run.records.slice(0, n)) feed(run.frames[format].get(r.seq));
    if (n >= run.records.length) feed(run.tails[format]);
    return shown;
  }

  function step(n) {
    if (!run) return;
    at = Math.max(0, Math.min(run.records.length, n));
    place.textContent = `${at} of ${run.records.length} events`;
    events.replaceChildren(...run.records.map((r, i) => event_row(r, i)));
    const whole = [];
    naive.replaceChildren();
    for (const [i, r] of run.records.slice(0, at).entries()) {
      const t = naive_text(r.record);
      if (!t) continue;
      whole.push(t);
      put_visible(naive.appendChild(el("span", { class: i === at - 1 ? "new" : "" })), t);
    }
    const mine = read("ai-sdk", at), is_over = at === run.records.length && !run.runs, final = is_over ? mine.answer : "";
    ours.replaceChildren();
    put_visible(ours, mine.answer);
    doing.hidden = is_over || !at;
    doing.textContent = visible(mine.doing || "Working");
    const doubled = whole.join("");
    verdict_naive.className = `verdict ${is_over && doubled !== final ? "bad" : ""}`;
    verdict_naive.textContent = !is_over ? "" : doubled === final ? "The same text." : `${doubled.length - final.length} characters too many: ${whole.length} texts were appended.`;
    verdict_ours.className = `verdict ${is_over ? "good" : ""}`;
    verdict_ours.textContent = is_over ? "The answer appears once." : "";
    table.replaceChildren(...Object.keys(READERS).map((format) => {
      const one = read(format, at);
      return el("tr", { "data-format": format }, el("th", { scope: "row" }, name_of(format)), put_visible(el("td"), one.answer), put_visible(el("td", { class: "soft" }), one.doing));
    }));
    back.disabled = at === 0;
    next.disabled = at === run.records.length;
  }

  function event_row(r, i) {
    const it = as_a2a(r.record), u = it.statusUpdate, a = it.artifactUpdate, found = run.findings.filter((f) => f.seq === r.seq);
    const kind = it.task ? "task" : u ? "status" : a ? "artifact" : (it.kind ?? "message"), state = state_of((u ?? it.task)?.status?.state);
    const data = u?.status?.message?.parts?.find((p) => p.data)?.data, text = naive_text(it);
    const row = el("li", { class: i < at ? (i === at - 1 ? "now" : "past") : "later" }, el("button", { type: "button", onclick: () => { pause(); step(i + 1); } },
      el("b", {}, visible(`${kind}${state ? ` ${state}` : ""}`)), text ? put_visible(el("q"), text) : data ? put_visible(el("code"), `${data.type ?? "data"}: ${data.text ?? ""}`) : el("span", { class: "soft" }, "no message"),
      found.map((f) => el("span", { class: `flag ${f.severity}`, title: visible(f.fix ?? "") }, visible(f.rule)))));
    return row;
  }

  function show_findings() {
    const once = [...new Map(run.findings.map((f) => [f.rule, f])).values()];
    findings.replaceChildren(...(once.length ? once.map((f) => finding_card(f)) : [el("p", { class: "soft" }, "No findings.")]));
  }

  function start() {
    if (!run) return;
    if (at >= run.records.length) step(0);
    play.textContent = "Pause";
    const go_on = () => {
      step(at + 1);
      timer = at < run.records.length ? setTimeout(go_on, PACE) : 0;
      if (!timer) { play.textContent = "Play"; announce(`${verdict_naive.textContent} ${verdict_ours.textContent}`); }
    };
    timer = setTimeout(go_on, PACE / 2);
  }
  function pause() {
    clearTimeout(timer);
    timer = 0;
    play.textContent = "Play";
  }
  function key(e) {
    if (e.target.closest("input, textarea, select, .scroll")) return;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: run?.records.length }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    pause();
    step(to);
  }

  // A real run, now: the demo agent's script that shows status. Its records are read while it works.
  async function run_live() {
    mark("live", "The demo agent runs its script \u201cstatus\u201d on this server now: indicators for a few seconds, then the answer in chunks.");
    pause();
    try {
      const catalog = await get_json("/.well-known/ai-catalog.json", { signal: stop.signal });
      const demo = catalog.entries.find((e) => e.identifier.endsWith(":demo"));
      if (!demo) throw new Error("This server has no demo agent: start it with `dragoman serve --agent demo`.");
      const base = new URL(demo.url, location.href).pathname.replace(/\/\.well-known\/.*$/, "");
      const message = { messageId: new_id(), role: "ROLE_USER", parts: [{ text: "status" }] };
      const sent = await get_json(`${base}/message:send`, { method: "POST", signal: stop.signal, headers: { "A2A-Version": "1.0", "Content-Type": "application/json" }, body: JSON.stringify({ message, configuration: { returnImmediately: true } }) });
      const source = new TaskSource(sent.task.id);
      for (let is_over = false; !is_over && !stop.signal.aborted; ) {
        const { task } = await source.about(stop.signal);
        is_over = /completed|failed|canceled|rejected|required/i.test(task.state);
        await load(source);
        if (!run) return;
        run.runs = !is_over;
        step(run.records.length);
        if (!is_over) await new Promise((r) => setTimeout(r, 700));
        if (choices.querySelector('[aria-pressed="true"]')?.dataset.run !== "live") return;
      }
    } catch (e) {
      if (stop.signal.aborted) return;
      problem.hidden = false;
      problem.textContent = visible(e.message);
    }
  }

  function open_inspector() {
    if (!run) return;
    const address = run.source instanceof TaskSource ? `/inspect/${encodeURIComponent(run.source.id)}` : "";
    open_drawer(`Inspect: ${chosen.name}`, address, (box) => {
      const holder = box.appendChild(el("div", { class: "inspect in-drawer" }));
      const inspector = new Inspector(holder, run.source, { is_drawer: true, seq: run.records[Math.max(0, at - 1)]?.seq });
      inspector.run();
      return { unmount: () => inspector.close() };
    });
  }

  build_choices();
  const ready = choose(RECORDINGS[0]);
  return ready.then(() => ({ unmount() { pause(); stop.abort(); } }));
}
