// A JSON Patch (RFC 6902) applied to a copy; null: it does not fit, so the agent has another state.
export function patched(state, patch) {
  try { return apply_patch(state, patch); } catch { return null; }
}

function apply_patch(state, patch) {
  const root = { "": structuredClone(state) };
  const find = (path) => {
    const keys = path.split("/").map((k) => k.replaceAll("~1", "/").replaceAll("~0", "~"));
    const key = keys.pop();
    const parent = keys.reduce((o, k) => (Object.hasOwn(o, k) ? o[k] : undefined), root);
    return { parent, key: Array.isArray(parent) && key === "-" ? parent.length : key };
  };
  const get = (path) => { const { parent, key } = find(path); return parent[key]; };
  const set = (parent, key, value) => {
    if (key === "__proto__" || (typeof parent !== "object" || !parent)) throw new Error("the path does not fit");
    parent[key] = value;
  };
  const remove = (path) => { const { parent, key } = find(path); if (Array.isArray(parent)) parent.splice(key, 1); else delete parent[key]; };
  const add = (path, value) => { const { parent, key } = find(path); if (Array.isArray(parent)) parent.splice(key, 0, value); else set(parent, key, value); };
  for (const { op, path, from, value } of patch) {
    if (op === "add") add(path, value);
    else if (op === "remove") remove(path);
    else if (op === "replace") { const { parent, key } = find(path); set(parent, key, value); }
    else if (op === "copy") add(path, structuredClone(get(from)));
    else if (op === "move") { const moved = get(from); remove(from); add(path, moved); }
  }
  return root[""];
}
