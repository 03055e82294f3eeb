// Parts of artifacts and messages that are not text: files and data. Bytes of agents are only shown as an image,
// audio, video or a PDF; everything else is a download. They never become HTML or a script in our origin.
import { el, icon } from "../lib/dom.js";
import { json_tree, visible } from "../lib/tree.js";

const IMAGE = /^image\/(png|jpeg|gif|webp|avif)$/, AUDIO = /^audio\/(mpeg|mp4|ogg|wav|webm|x-wav|aac|flac)$/, VIDEO = /^video\/(mp4|webm|ogg)$/;
const MAX_INLINE = 32 << 20; // bytes

export function size_text(n) {
  if (n < 1000) return `${n} bytes`;
  const unit = n < 1e6 ? "kB" : "MB", value = n < 1e6 ? n / 1e3 : n / 1e6;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

const bytes_of = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

// One part of an artifact, or null: text.
export function show_part(part) {
  if ("data" in part) return el("div", { class: "data" }, json_tree(part.data));
  if ("raw" in part || "url" in part) return show_file(part);
  return null;
}

function show_file(part) {
  const type = visible((part.mediaType ?? "application/octet-stream").slice(0, 100).toLowerCase()), name = visible((part.filename || "file").slice(0, 200));
  if (part.url !== undefined) {
    const is_web = /^https?:\/\//i.test(part.url);
    const title = is_web ? el("a", { href: part.url, target: "_blank", rel: "noopener noreferrer" }, name) : el("span", {}, `${name}: ${visible(String(part.url).slice(0, 500))}`);
    return el("figure", { class: "file-part" }, caption(title, is_web ? `${type} at ${new URL(part.url).host}` : type));
  }
  let bytes;
  try { bytes = bytes_of(part.raw); } catch { return el("figure", { class: "file-part" }, caption(el("span", {}, name), "invalid base64")); }
  const shown_type = [IMAGE, AUDIO, VIDEO].some((t) => t.test(type)) || type === "application/pdf" ? type : "application/octet-stream";
  const url = URL.createObjectURL(new Blob([bytes], { type: shown_type }));
  // a download never opens in a tab, where a document would have our origin
  const save = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const preview = bytes.length <= MAX_INLINE && preview_of(shown_type, url, name, bytes);
  return el("figure", { class: "file-part" }, preview, caption(el("a", { href: save, download: name }, name), `${type}, ${size_text(bytes.length)}`));
}

const caption = (title, about) => el("figcaption", {}, icon("file"), el("span", { class: "file-name" }, title), el("span", { class: "soft small" }, about));

function preview_of(type, url, name, bytes) {
  if (IMAGE.test(type)) return el("img", { src: url, alt: name, class: "picture", loading: "lazy" });
  if (AUDIO.test(type)) return el("audio", { src: url, controls: true, preload: "metadata", "aria-label": name });
  if (VIDEO.test(type)) return el("video", { src: url, controls: true, preload: "metadata", "aria-label": name });
  if (type === "application/pdf" && new TextDecoder().decode(bytes.subarray(0, 5)) === "%PDF-") return pdf_preview(url, name);
  return null;
}

// Only when the user asks for it: the browser's viewer takes the keyboard focus, and for a damaged file it shows a dialog in which
// Enter reloads the page.
function pdf_preview(url, name) {
  const button = el("button", { type: "button", class: "show-pdf", onclick: () => button.replaceWith(el("iframe", { src: url, class: "pdf", title: name })) }, icon("file"), "Show the PDF");
  return button;
}

// ---- files of the user ---------------------------------------------------------------------------------------------

export const read_base64 = (file) => new Promise((done, fail) => {
  const reader = new FileReader();
  reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ""));
  reader.onerror = () => fail(reader.error);
  reader.readAsDataURL(file);
});

export const file_chip = (file, ...more) => el("span", { class: "chip" }, icon("file"), el("span", { class: "chip-name" }, file.name), el("span", { class: "soft" }, size_text(file.size)), more);
