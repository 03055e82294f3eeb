// For operators: current figures of the server, its agents, its live tasks, and the trace of one task.
import { el } from "../lib/dom.js";
import { error_of, get_json, request } from "../lib/http.js";
import { Rate, Series, chart } from "../lib/series.js";
import { open_drawer, view_header } from "../lib/shell.js";
import { size_of, visible } from "../lib/tree.js";
import { task_address, task_table } from "../inspect/start.js";
import { clock_of, gap_of, state_of } from "../inspect/record.js";
import { parse_metrics, sum } from "./metrics.js";

const EVERY = 2000; // ms between two readings
const MAX_TRACE = 500; // transitions

const count = (n) => (n >= 100 ? Math.round(n).toLocaleString("en") : String(Math.round(n * 10) / 10));
const plural = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
const shortened = (s) => (s.length > 200 ? `${s.slice(0, 199)}\u2026` : s);
const per_second = (n) => `${count(n)}/s`;

const is_fault = ({ code }) => Number(code) >= 500;
const is_refused = ({ code }) => Number(code) >= 400 && Number(code) < 500;
// Figures: a value now, or a rate of a counter.
const FIGURES = [
  { name: "Requests", rate: (m) => sum(m, "dragoman_http_requests_total"), text: per_second },
  { name: "Open streams", value: (m) => sum(m, "dragoman_streams_open"), text: count },
  { name: "Active runs", value: (m) => sum(m, "dragoman_runs_running"), text: count },
  { name: "Records", rate: (m) => sum(m, "dragoman_records_total"), text: per_second },
  { name: "Sent", rate: (m) => sum(m, "dragoman_http_sent_bytes_total"), text: (n) => `${size_of(Math.round(n))}/s` },
  { name: "Refused (4xx)", rate: (m) => sum(m, "dragoman_http_requests_total", is_refused) + sum(m, "dragoman_http_refused_total"), text: per_second, tone: "warn" },
  { name: "Errors (5xx)", rate: (m) => sum(m, "dragoman_http_requests_total", is_fault), text: per_second, tone: "bad" },
  { name: "CPU", rate: (m) => sum(m, "process_cpu_seconds_total") * 100, text: (n) => `${count(n)} %` },
  { name: "Memory", value: (m) => sum(m, "process_resident_memory_bytes"), text: size_of },
];

export async function mount_operate(element, { params }) {
  const stop = new AbortController(), { signal } = stop;
  document.title = "Operate \u00b7 Dragoman";
  const body = el("div", { class: "operate" });
  element.append(view_header("Operate"), body);
  const me = await get_json("/debug/me", { signal }).catch((e) => ({ error: e }));
  if (!me.operator) {
    refuse(body, me);
    return { unmount: () => stop.abort() };
  }
  const view = build(body, signal);
  if (params?.get("task")) view.show_task(params.get("task"));
  view.run();
  return { unmount: () => { stop.abort(); view.close(); } };
}

function refuse(body, { error }) {
  body.append(el("section", { class: "panel refused" }, el("h2", {}, "This view is for operators"),
    el("p", {}, "It shows all agents, all tasks, and their owners. You can still use the agents and inspect your own tasks."),
    el("p", { class: "soft" }, "If you run this server, add ", el("code", {}, "role: operator"), " to your token in the configuration. Without tokens, callers from the same machine are operators."),
    error && error.status !== 403 ? el("p", { class: "error" }, visible(error.message)) : null,
    el("p", {}, el("a", { href: "/", "data-route": true }, "Back to the agents"))));
}

function build(body, signal) {
  const charts = FIGURES.map((f) => ({ ...f, series: f.rate ? new Rate() : new Series(), chart: chart(f.name, f.text, f.tone) }));
  const summary = el("p", { class: "soft" }), agents = el("div", { class: "agent-list" }), tasks = el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Live tasks" }), warnings = el("div", { class: "warnings" });
  const trace = el("div", { class: "trace" }), problem = el("p", { class: "note error", role: "alert", hidden: true });
  const id = el("input", { id: "operate-task", required: true, spellcheck: "false", autocomplete: "off", placeholder: "task id" });
  const principal = el("input", { id: "operate-principal", spellcheck: "false", autocomplete: "off", placeholder: "only for tasks of another owner" });
  const form = el("form", { class: "find", onsubmit: (e) => { e.preventDefault(); show_task(id.value.trim(), principal.value.trim()); } },
    el("label", { for: "operate-task" }, "Task"), id, el("label", { for: "operate-principal" }, "Owner"), principal, el("button", { class: "button primary" }, "Show the trace"));
  body.append(problem, summary, el("section", { class: "charts", "aria-label": "Figures" }, charts.map((c) => c.chart.box)),
    el("div", { class: "two" },
      el("section", { class: "panel" }, el("h2", {}, "Agents"), agents),
      el("section", { class: "panel" }, el("h2", {}, "Lint findings in their events"), warnings)),
    el("section", { class: "panel" }, el("h2", {}, "Live tasks"), tasks),
    el("section", { class: "panel" }, el("h2", {}, "One task"), form, trace));
  let timer = 0, listed = [];

  async function read() {
    const r = await request("/metrics", { signal });
    if (!r.ok) throw await error_of(r);
    const metrics = parse_metrics(await r.text()), now = performance.now();
    for (const c of charts) {
      if (c.rate) c.series.count(c.rate(metrics), now);
      else c.series.add(c.value(metrics));
      c.chart.draw(c.series);
    }
    const started = sum(metrics, "process_start_time_seconds"), version = metrics.get("dragoman_build_info")?.[0]?.labels.version ?? "";
    summary.textContent = `Dragoman ${version} \u00b7 ${sum(metrics, "dragoman_ready") ? "ready" : "not ready"} \u00b7 up ${gap_of(Date.now() - started * 1000).slice(1)} \u00b7 ${plural(sum(metrics, "dragoman_tasks_total"), "task")}, ${plural(sum(metrics, "dragoman_records_total"), "record")} since then`;
    const found = (metrics.get("dragoman_agent_warnings_total") ?? []).filter((w) => w.value > 0).sort((a, b) => b.value - a.value);
    warnings.replaceChildren(...(found.length ? found.map((w) => el("p", {}, el("code", {}, visible(w.labels.rule)), ` ${w.value.toLocaleString("en")} run${w.value === 1 ? "" : "s"}`)) : [el("p", { class: "soft" }, "No findings.")]));
    listed = (await get_json("/debug/tasks", { signal })).tasks ?? [];
    tasks.replaceChildren(listed.length ? task_table(listed) : el("p", { class: "soft" }, "No task is running or waiting."));
    put_counts();
  }

  const cards = new Map();
  async function read_agents() {
    const catalog = await get_json("/.well-known/ai-catalog.json", { signal });
    agents.replaceChildren(...catalog.entries.map((e) => {
      const name = e.identifier.split(":").pop(), n = el("span", { class: "count" });
      cards.set(name, n);
      return el("a", { href: `/agents/${encodeURIComponent(name)}/`, "data-route": true }, el("b", {}, visible(e.displayName)), el("code", {}, visible(name)), n, el("span", { class: "soft" }, shortened(visible(e.description ?? ""))));
    }));
  }
  function put_counts() {
    for (const [name, n] of cards) {
      const live = listed.filter((t) => t.agent === name);
      n.textContent = live.length ? `${live.length} live` : "";
    }
  }

  async function show_task(task, owner = "") {
    id.value = task;
    const q = owner ? `?principal=${encodeURIComponent(owner)}` : "";
    const found = await get_json(`/debug/tasks/${encodeURIComponent(task)}/trace${q}`, { signal }).catch((e) => ({ error: e }));
    if (signal.aborted) return;
    if (found.error) { trace.replaceChildren(el("p", { class: "error" }, visible(found.error.message))); return; }
    const list = (found.transitions ?? []).slice(-MAX_TRACE), address = task_address({ id: task, principal: owner });
    trace.replaceChildren(
      el("p", {}, el("a", { href: address, "data-route": true }, "Inspect its records"), " ", el("button", { type: "button", class: "button small", onclick: () => inspect(task, address, owner) }, "Inspect in the side panel")),
      list.length ? el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Trace" }, el("table", { class: "tasks" },
        el("thead", {}, el("tr", {}, ["Time", "After", "State machine", "From", "To"].map((h) => el("th", { scope: "col" }, h)))),
        el("tbody", {}, list.map((t, i) => el("tr", {}, el("td", {}, clock_of(Date.parse(t.time))), el("td", { class: "soft" }, i ? gap_of(Date.parse(t.time) - Date.parse(list[i - 1].time)) : ""),
          el("td", {}, visible(t.machine)), el("td", {}, state_of(t.from)), el("td", {}, el("b", {}, state_of(t.to)))))))) : el("p", { class: "soft" }, "No transition of this task is in memory."));
  }

  const inspect = (task, address, principal) => open_drawer("Inspect", address, async (box) => {
    const { mount_inspector } = await import("../inspect/inspect.js");
    return mount_inspector(box, { task, turn: 0, params: new URLSearchParams(principal ? { principal } : {}), is_drawer: true });
  });

  async function run() {
    try {
      if (!cards.size) await read_agents();
      if (!document.hidden) await read();
      problem.hidden = true;
    } catch (e) {
      if (signal.aborted) return;
      problem.hidden = false;
      problem.textContent = `The server does not answer: ${visible(e.message)}`;
    }
    if (!signal.aborted) timer = setTimeout(run, EVERY);
  }

  return { run, show_task, close: () => clearTimeout(timer) };
}
