// The page: its views, one at a time, and the side panel beside them.
import { $, el } from "./lib/dom.js";
import { on_token_needed } from "./lib/http.js";
import { start_router } from "./lib/router.js";
import { ask_for_token, close_drawer, show_side, view_header } from "./lib/shell.js";
import { mount_side } from "./talk/side.js";
import { mount_talk } from "./talk/talk.js";

// mount(element, route): returns { unmount(), update(route) }, or a promise of it. update() is optional: without it the
// view is mounted again when its address changes.
const VIEWS = {
  talk: () => mount_talk,
  inspect: async () => (await import("./inspect/inspect.js")).mount_inspector,
  compare: async () => (await import("./compare/compare.js")).mount_compare,
  operate: async () => (await import("./operate/operate.js")).mount_operate,
};

let shown = null, view = null, change = 0;

async function show(route) {
  const mine = ++change, element = $("#view");
  show_side(false);
  document.body.dataset.view = route.view;
  side.update(route);
  if (view && shown === route.view && view.update) return view.update(route);
  await close_drawer();
  view?.unmount?.();
  view = null;
  element.replaceChildren();
  shown = route.view;
  try {
    const mount = await VIEWS[route.view]();
    if (mine !== change) return;
    const mounted = await mount(element, route);
    if (mine === change) view = mounted;
    else mounted?.unmount?.();
  } catch (e) {
    if (mine !== change) return;
    element.replaceChildren(view_header("Dragoman"), el("p", { class: "note error", role: "alert" }, `This view could not be shown: ${e.message}`));
  }
}

on_token_needed(ask_for_token);
const side = mount_side($("#side"));
start_router(show);
