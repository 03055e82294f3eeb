// Stays at the end of the conversation while it grows, unless the reader has scrolled up. An answer that arrives at once
// and is longer than the screen is shown from its start. Observers report where the reader is and that the content has
// grown, so no layout is read while text arrives in pieces.
import { el, icon } from "../lib/dom.js";

export function stay_at_end(scroller, content) {
  const end = el("div", { class: "log-end", "aria-hidden": "true" });
  const jump = el("button", { type: "button", class: "jump", hidden: true, onclick: () => go_to_end() }, icon("down"), "Latest");
  let at_end = true, height = 0, room = 0;
  content.after(end);
  scroller.after(jump);
  const show = () => { jump.hidden = at_end; };
  const position = new IntersectionObserver((list) => { at_end = list.at(-1).isIntersecting; show(); }, { root: scroller, rootMargin: "0px 0px 96px 0px" });
  const size = new ResizeObserver((list) => {
    let grown = 0;
    for (const e of list) {
      if (e.target === scroller) room = e.contentRect.height;
      else [grown, height] = [e.contentRect.height - height, e.contentRect.height];
    }
    if (!at_end) return;
    const turn = grown > room / 2 && content.lastElementChild;
    if (turn && turn.offsetHeight > room && turn.getBoundingClientRect().top >= scroller.getBoundingClientRect().top) turn.scrollIntoView({ block: "start" });
    else scroller.scrollTop = 1e9;
  });
  const wheel = (e) => { if (e.deltaY < 0 && scroller.scrollTop > 0) at_end = false; };
  position.observe(end);
  size.observe(scroller); // first: its height is known when the content is reported
  size.observe(content);
  scroller.addEventListener("wheel", wheel, { passive: true });
  function go_to_end() {
    at_end = true;
    show();
    scroller.scrollTop = 1e9;
  }
  return {
    go_to_end,
    stop() {
      position.disconnect();
      size.disconnect();
      scroller.removeEventListener("wheel", wheel);
      jump.remove();
      end.remove();
    },
  };
}
