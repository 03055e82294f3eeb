// Elements. Texts never become HTML.

// el("p", { class: "note", hidden: true, onclick: f }, "text", child): attributes that are false, null or undefined are
// left out, functions are event listeners, arrays of children are flattened.
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(key.replace(/^on/, ""), value);
    else if (value === true) e.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) e.setAttribute(key, value);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

export const $ = (selector, within = document) => within.querySelector(selector);

const SVG = "http://www.w3.org/2000/svg";
// Stroke paths on a grid of 24 units.
const ICONS = {
  add: "M12 5v14M5 12h14", menu: "M4 7h16M4 12h16M4 17h16", close: "M6 6l12 12M18 6L6 18", send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z", attach: "M20 11l-8.5 8.5a5 5 0 01-7-7L13 4a3.5 3.5 0 015 5l-8.500 8.500a2 2 0 01-3-3L14 7",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1", edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4", retry: "M4 12a8 8 0 102.500-5.800M4 4v4.500h4.500",
  check: "M5 13l4 4L19 7", tool: "M14.500 6.500a4 4 0 00-5.300 5.300L4 17l3 3 5.200-5.200a4 4 0 005.300-5.300L15 12l-3-3z",
  thought: "M9 18h6M10 21h4M12 3a6 6 0 00-3.500 10.900c.6.500 1 1.100 1 2.100h5c0-1 .4-1.600 1-2.100A6 6 0 0012 3z",
  agent: "M12 3v3M5 9h14v10H5zM9 13v2M15 13v2", file: "M6 3h8l4 4v14H6zM14 3v4h4", state: "M4 6h16M4 12h10M4 18h7",
  inspect: "M10.500 4a6.500 6.500 0 110 13 6.500 6.500 0 010-13zM15.500 15.500L21 21", search: "M10.500 4a6.500 6.500 0 110 13 6.500 6.500 0 010-13zM15.500 15.500L21 21",
  link: "M10 14a4 4 0 006 0l3-3a4 4 0 00-6-6l-1 1M14 10a4 4 0 00-6 0l-3 3a4 4 0 006 6l1-1", more: "M6 12h.01M12 12h.01M18 12h.01", down: "M6 9l6 6 6-6",
};
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[name] ?? "");
  svg.append(path);
  return svg;
}

// A button with an icon and a name that screen readers announce.
export const icon_button = (name, label, onclick, attributes = {}) =>
  el("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...attributes }, icon(name));

// Calls fn(list) at most once per frame, with everything that was added since. Tabs in the background have no frames:
// there a timer is used.
export function per_frame(fn) {
  let items = [], waits = false;
  const run = () => { waits = false; const now = items; items = []; fn(now); };
  return (item) => {
    items.push(item);
    if (waits) return;
    waits = true;
    if (document.hidden) setTimeout(run, 50);
    else requestAnimationFrame(run);
  };
}

export const pause = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

export const new_id = () => crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
