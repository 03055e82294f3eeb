// A figure over time as a small chart: a bounded number of samples, drawn as one path.
const SVG = "http://www.w3.org/2000/svg", WIDTH = 240, HEIGHT = 56;
const MAX_SAMPLES = 180;

const svg = (name, attributes, ...children) => {
  const e = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
};

export class Series {
  constructor(max = MAX_SAMPLES) { this.max = max; this.samples = []; }
  add(value) {
    this.samples.push(value);
    if (this.samples.length > this.max) this.samples.shift();
  }
  last() { return this.samples.at(-1) ?? 0; }
  peak() { return this.samples.reduce((a, b) => Math.max(a, b), 0); }
}

// A counter that only grows (and starts again at 0 with the process) becomes a rate per second.
export class Rate extends Series {
  count(value, ms) {
    if (this.before !== undefined && ms > this.before.ms)
      this.add((Math.max(0, value >= this.before.value ? value - this.before.value : value) * 1000) / (ms - this.before.ms));
    this.before = { value, ms };
  }
}

// draw(series) changes what is there; text_of(value): with its unit
export function chart(name, text_of, tone = "") {
  const line = svg("path", { class: "line", fill: "none", "vector-effect": "non-scaling-stroke" }), area = svg("path", { class: "area" });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" }, area, line);
  const box = document.createElement("figure"), title = document.createElement("figcaption"), value = document.createElement("b"), peak = document.createElement("span");
  box.className = `chart ${tone}`;
  title.textContent = name;
  peak.className = "soft";
  box.append(title, value, picture, peak);
  return {
    box,
    draw(series) {
      const top = series.peak() || 1, n = series.samples.length, x = (i) => WIDTH - (n - 1 - i) * (WIDTH / (series.max - 1));
      const points = series.samples.map((v, i) => `${x(i).toFixed(1)} ${(HEIGHT - 2 - (v / top) * (HEIGHT - 6)).toFixed(1)}`);
      line.setAttribute("d", n ? `M${points.join("L")}` : "");
      area.setAttribute("d", n ? `M${x(0).toFixed(1)} ${HEIGHT}L${points.join("L")}L${WIDTH} ${HEIGHT}Z` : "");
      value.textContent = text_of(series.last());
      peak.textContent = `peak ${text_of(series.peak())}`;
      picture.setAttribute("aria-label", `${name}: ${text_of(series.last())}, peak ${text_of(series.peak())}`);
    },
  };
}
