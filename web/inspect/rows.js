// Rows of different, known heights in a scrolling element; only visible rows have elements. Drawing stops when
// its share of a frame is used up and continues in the next one.
const OVERSCAN = 400; // pixels above and below
const BUDGET = 4; // ms of drawing per frame

export class Rows {
  // body: holds the rows and gets their total height; scroller: scrolls it
  // height_of(i): pixels; draw(i, element): fills it
  constructor(scroller, body, { height_of, draw, on_range }) {
    Object.assign(this, { scroller, body, height_of, draw, on_range });
    this.n = 0;
    this.tops = new Float64Array(1024); // tops[i]: of row i; tops[n]: the total height
    this.good = 0; // tops[0..good] are right
    this.drawn = new Map(); // index -> element
    this.spare = [];
    this.stale = new Set(); // drawn with old content
    this.is_due = false;
    scroller.addEventListener("scroll", () => this.plan(), { passive: true });
    this.watcher = new ResizeObserver(() => this.plan());
    this.watcher.observe(scroller);
  }

  close() { this.watcher.disconnect(); this.is_closed = true; }

  // Rows from `from` on are new or have another height.
  set(n, from = 0) {
    this.n = n;
    this.good = Math.min(this.good, from);
    for (const i of this.drawn.keys()) if (i >= from) this.stale.add(i);
    this.plan();
  }

  touch_all() {
    for (const i of this.drawn.keys()) this.stale.add(i);
    this.plan();
  }

  measure() {
    if (this.good >= this.n) return;
    if (this.tops.length <= this.n) {
      const more = new Float64Array(Math.max(this.n + 1, this.tops.length * 2));
      more.set(this.tops);
      this.tops = more;
    }
    for (let i = this.good; i < this.n; i++) this.tops[i + 1] = this.tops[i] + this.height_of(i);
    this.good = this.n;
  }

  total() { this.measure(); return this.n ? this.tops[this.n] : 0; }

  // The row at a height.
  index_at(y) {
    this.measure();
    let low = 0, high = this.n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= y) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, Math.min(low, this.n - 1));
  }

  plan() {
    if (this.is_due || this.is_closed) return;
    this.is_due = true;
    requestAnimationFrame(() => { this.is_due = false; this.render(); });
  }

  head() { return this.body.offsetTop; } // what sticks above the rows

  render() {
    if (this.is_closed) return;
    const total = this.total();
    if (this.height !== total) this.body.style.height = `${(this.height = total)}px`;
    const y = this.scroller.scrollTop - this.head(), seen = this.scroller.clientHeight;
    const first = this.n ? this.index_at(y - OVERSCAN) : 0, last = this.n ? this.index_at(y + seen + OVERSCAN) : -1;
    for (const [i, e] of this.drawn) {
      if (i >= first && i <= last) continue;
      this.drawn.delete(i);
      this.stale.delete(i);
      e.remove();
      if (this.spare.length < 40) this.spare.push(e);
    }
    const end = performance.now() + BUDGET;
    let is_whole = true;
    for (let i = first; i <= last; i++) {
      let e = this.drawn.get(i);
      if (e && !this.stale.has(i)) continue;
      if (performance.now() > end) { is_whole = false; break; }
      if (!e) {
        e = this.spare.pop() ?? document.createElement("div");
        this.drawn.set(i, e);
        this.body.append(e);
      }
      this.stale.delete(i);
      this.draw(i, e);
      e.style.transform = `translateY(${this.tops[i]}px)`;
      e.style.height = `${this.tops[i + 1] - this.tops[i]}px`;
    }
    if (!is_whole) this.plan();
    this.on_range?.(first, last);
  }

  // Scrolls as little as necessary.
  show(i) {
    this.measure();
    if (i < 0 || i >= this.n) return;
    const head = this.head(), top = this.tops[i], bottom = this.tops[i + 1], seen = this.scroller.clientHeight - head;
    const y = this.scroller.scrollTop;
    if (top < y) this.scroller.scrollTop = top;
    else if (bottom > y + seen) this.scroller.scrollTop = Math.min(top, bottom - seen);
    this.plan();
  }
}
