// Addresses of the page:
//   /agents/{id}/           a new conversation with an agent; ?c={contextId}: that conversation
//   /inspect/{task}?turn=2  the inspector; /inspect: for a file that is dropped onto it
//   /compare, /operate
//   anything else           the first agent
export function parse_address(url) {
  const { pathname, searchParams } = new URL(url, location.origin);
  const part = pathname.split("/").filter(Boolean).map((p) => { try { return decodeURIComponent(p); } catch { return p; } });
  if (part[0] === "agents" && part[1]) return { view: "talk", agent: part[1], context: searchParams.get("c") ?? "" };
  if (part[0] === "inspect") return { view: "inspect", task: part[1] ?? "", turn: Number(searchParams.get("turn")) || 0, params: searchParams };
  if (part[0] === "compare" || part[0] === "operate") return { view: part[0], params: searchParams };
  return { view: "talk", agent: "", context: searchParams.get("c") ?? "" };
}

export const talk_address = (agent, context = "") => `/agents/${encodeURIComponent(agent)}/${context ? `?c=${encodeURIComponent(context)}` : ""}`;

let on_change = () => {};
export function start_router(handler) {
  on_change = handler;
  addEventListener("popstate", () => on_change(parse_address(location.href)));
  document.addEventListener("click", (e) => {
    const a = e.target.closest?.("a[data-route]");
    if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(a.getAttribute("href"));
  });
  return on_change(parse_address(location.href));
}

export function go(address) {
  if (address !== location.pathname + location.search) history.pushState(null, "", address);
  return on_change(parse_address(address));
}

// The same view has another address now: a conversation has got its id.
export function rename(address, replace = true) {
  if (address === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
}
