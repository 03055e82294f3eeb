// Text into the clipboard and into files.
import { el } from "../lib/dom.js";

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no permission, or not a secure origin
    const area = el("textarea", { readonly: "" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

export function save(name, parts, type) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}
