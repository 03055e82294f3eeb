// The text format of /metrics: name{label="value"} number.
const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function parse_metrics(text) {
  const found = new Map(); // name -> [{labels, value}]
  for (const line of text.split("\n")) {
    const m = line.startsWith("#") ? null : LINE.exec(line);
    if (!m) continue;
    const labels = Object.fromEntries([...(m[2] ?? "").matchAll(LABEL)].map(([, k, v]) => [k, v]));
    if (!found.has(m[1])) found.set(m[1], []);
    found.get(m[1]).push({ labels, value: Number(m[3]) });
  }
  return found;
}

export const sum = (metrics, name, want = () => true) => (metrics.get(name) ?? []).reduce((n, one) => n + (want(one.labels) ? one.value : 0), 0);
