// Shared by the views: the header, the side panel on small screens, the drawer, notes and announcements.
import { $, el, icon_button } from "./dom.js";

export const show_side = (is_open) => {
  document.body.classList.toggle("side-open", is_open);
  if (is_open) $("#side a, #side button, #side input")?.focus();
};

// The header of a view: a button for the side panel (small screens), the title, and buttons.
export const view_header = (title, ...actions) => el("header", { class: "view-header" },
  icon_button("menu", "Agents and conversations", () => show_side(!document.body.classList.contains("side-open")), { class: "icon-button only-small" }),
  el("h1", { class: "view-title" }, title), el("div", { class: "actions" }, actions));

// Screen readers say this sentence. Never per token.
export function announce(sentence) {
  const box = $("#announcer");
  box.textContent = "";
  setTimeout(() => { box.textContent = sentence; }, 60);
}

// ---- the drawer: an inspector beside the conversation ------------------------------------------------------------------

let mounted = null, before = null;
// mount(element): returns { unmount() }, or a promise of it.
export async function open_drawer(title, address, mount) {
  await close_drawer();
  const drawer = $("#drawer"), body = el("div", { class: "drawer-body" });
  before = document.activeElement;
  drawer.replaceChildren(el("header", { class: "view-header" }, el("h2", { class: "view-title" }, title),
    el("div", { class: "actions" }, address && el("a", { class: "button", href: address, "data-route": true, onclick: () => close_drawer() }, "Open as page"),
      icon_button("close", "Close the inspector", close_drawer))), body);
  drawer.hidden = false;
  document.body.classList.add("drawer-open");
  $(".actions .icon-button", drawer).focus();
  mounted = await mount(body);
}
export async function close_drawer() {
  const drawer = $("#drawer");
  if (drawer.hidden) return;
  drawer.hidden = true;
  document.body.classList.remove("drawer-open");
  mounted?.unmount?.();
  mounted = null;
  drawer.replaceChildren();
  if (before?.isConnected) before.focus();
}

// ---- the token --------------------------------------------------------------------------------------------------------

export function ask_for_token(refused) {
  const dialog = $("#token-dialog"), input = $("#token"), error = $("#token-error");
  error.hidden = !refused;
  error.textContent = refused ? "Unknown token." : "";
  input.value = "";
  dialog.addEventListener("cancel", (e) => e.preventDefault()); // nothing works without it
  dialog.showModal();
  input.focus();
  return new Promise((done) => dialog.addEventListener("close", () => done(input.value), { once: true }));
}
