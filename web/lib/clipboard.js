// Text into the clipboard. Pages without https have no clipboard API, and it can be forbidden.
export async function copy_text(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.className = "visually-hidden";
    area.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(area); // outside of an open dialog nothing can be selected
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
