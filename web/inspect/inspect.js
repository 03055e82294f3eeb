// The view at /inspect and /inspect/{task}, and the body of the drawer.
import { el } from "../lib/dom.js";
import { get_json } from "../lib/http.js";
import { rename } from "../lib/router.js";
import { view_header } from "../lib/shell.js";
import { visible } from "../lib/tree.js";
import { Inspector } from "./inspector.js";
import { StreamSource, TaskSource } from "./source.js";
import { build_start } from "./start.js";

const MAX_RECORDING = 64 << 20; // bytes; more would not fit into the memory of a tab several times

// route: { task, turn, params, is_drawer }. params: seq, and tenant and principal of the owner (operators)
export function mount_inspector(element, route) {
  const { is_drawer, params } = route, stop = new AbortController();
  const title = el("span", {}, "Inspect");
  const back = el("button", { type: "button", class: "button", hidden: true, onclick: () => show_start() }, "Another recording");
  if (!is_drawer) element.append(view_header(title, back));
  const body = element.appendChild(el("div", { class: `inspect${is_drawer ? " in-drawer" : ""}` }));
  const veil = el("div", { class: "veil", hidden: true }, "Drop a recorded stream to inspect it");
  body.append(veil);
  let inspector = null, place = { turn: route.turn || 0, seq: Number(params?.get("seq")) || 0 };
  const me = get_json("/debug/me", { signal: stop.signal }).catch(() => ({}));

  function clear() {
    inspector?.close();
    inspector = null;
    body.replaceChildren(veil);
  }

  function open(source, options) {
    clear();
    inspector = new Inspector(body, source, { is_drawer, ...options });
    inspector.run();
    if (!is_drawer) inspector.grid.focus({ preventScroll: true });
  }

  function open_task() {
    const owner = Object.fromEntries(["tenant", "principal"].filter((k) => params?.has(k)).map((k) => [k, params.get(k)]));
    title.textContent = "Inspect";
    back.hidden = true;
    open(new TaskSource(route.task, owner), { ...place, on_place, on_about: ({ task }) => { if (task && !is_drawer) { title.textContent = `Inspect ${visible(task.agent ?? "")} ${task.id?.slice(-6) ?? ""}`; document.title = `${title.textContent} \u00b7 Dragoman`; } } });
  }

  // The address names what is shown, so that it can be sent to somebody.
  function on_place(change) {
    Object.assign(place, change);
    if (is_drawer) return;
    const q = new URLSearchParams(params ?? "");
    for (const [k, v] of Object.entries(place)) if (v) q.set(k, v); else q.delete(k);
    rename(`/inspect/${encodeURIComponent(route.task)}${String(q) ? `?${q}` : ""}`);
  }

  function open_recording(name, blob) {
    if (blob.size > MAX_RECORDING) {
      body.append(el("p", { class: "note error", role: "alert" }, `${visible(name)} is larger than ${MAX_RECORDING >> 20} MiB.`));
      return;
    }
    title.textContent = `Inspect ${visible(name)}`;
    back.hidden = is_drawer;
    open(new StreamSource(name, blob), {});
  }

  function show_start() {
    clear();
    title.textContent = "Inspect";
    back.hidden = true;
    document.title = "Inspect \u00b7 Dragoman";
    body.append(build_start({ me, open_recording, signal: stop.signal }));
  }

  const has_file = (e) => [...(e.dataTransfer?.types ?? [])].includes("Files");
  body.addEventListener("dragenter", (e) => { if (has_file(e)) { e.preventDefault(); veil.hidden = false; } });
  body.addEventListener("dragover", (e) => { if (has_file(e)) e.preventDefault(); });
  veil.addEventListener("dragleave", () => { veil.hidden = true; });
  body.addEventListener("drop", (e) => {
    veil.hidden = true;
    const file = e.dataTransfer?.files[0];
    if (!file) return;
    e.preventDefault();
    open_recording(file.name, file);
  });

  if (route.task) open_task();
  else show_start();
  return {
    unmount() { stop.abort(); clear(); },
    update(next) {
      route = { ...next, is_drawer };
      place = { turn: next.turn || 0, seq: Number(next.params?.get("seq")) || 0 };
      if (next.task) open_task();
      else show_start();
    },
  };
}
