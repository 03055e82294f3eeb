// The frames that each protocol sends for each record. A column is loaded when it becomes visible, and again while the task runs.
const AGAIN = 1500; // ms between two readings of a column of a running task

export class Columns {
  // on_change(from): entries of records from this seq on are new
  constructor(source, on_change) {
    this.source = source;
    this.on_change = on_change;
    this.of = new Map(); // `${format} ${turn}` -> {entries, tail, is_whole, error, to, loading}
    this.stop = new AbortController();
  }

  close() { this.stop.abort(); }

  column(format, turn) { return this.of.get(`${format} ${turn}`); }

  // undefined: not loaded; null: nothing is sent
  entry(format, turn, seq) {
    const c = this.column(format, turn);
    if (!c) return undefined;
    return c.entries.get(seq) ?? (c.is_whole || seq < c.to ? null : undefined);
  }

  tail(format, turn) {
    const c = this.column(format, turn);
    return c?.is_whole ? c.tail : undefined;
  }

  // Reads a column, unless it is read already. last: the newest record; is_over: no more will come
  want(format, turn, last, is_over) {
    const key = `${format} ${turn}`;
    let c = this.of.get(key);
    if (!c) this.of.set(key, (c = { entries: new Map(), tail: null, is_whole: false, to: 0, error: "", read_at: -AGAIN, cost: 0 }));
    if (c.loading || c.error || (c.is_whole && c.last >= last && (c.is_over || !is_over))) return c.loading ?? Promise.resolve();
    const wait = Math.max(0, c.read_at + Math.max(AGAIN, 4 * c.cost) - performance.now());
    c.loading = (async () => {
      if (wait && !is_over) await new Promise((r) => setTimeout(r, wait));
      await this.read(c, format, turn, last, is_over);
    })().finally(() => { c.loading = null; });
    return c.loading;
  }

  async read(c, format, turn, last, is_over) {
    c.read_at = performance.now();
    let from = Infinity, told = 0;
    try {
      for await (const { seq, frames, losses = [], error } of this.source.column(format, turn, this.stop.signal, is_over)) {
        if (seq === null) { c.tail = { frames: frames ?? "", losses }; continue; }
        if (seq > c.to || !c.entries.has(seq)) from = Math.min(from, seq);
        c.entries.set(seq, { frames: frames ?? "", losses: error ? [{ what: "all later records", why: error }, ...losses] : losses });
        c.to = Math.max(c.to, seq);
        if (performance.now() - told > 100) { // not for each of thousands
          told = performance.now();
          this.on_change(from);
          from = Infinity;
        }
      }
      Object.assign(c, { is_whole: true, last: Math.max(last, c.to), is_over, error: "" });
    } catch (e) {
      if (this.stop.signal.aborted) return;
      c.error = e.message;
    }
    c.cost = performance.now() - c.read_at;
    this.on_change(0);
  }

  // The bytes of a column, as the endpoint sends them.
  text(format, turn) {
    const c = this.column(format, turn);
    return [...c.entries].sort((a, b) => a[0] - b[0]).map(([, e]) => e.frames).join("") + (c.tail?.frames ?? "");
  }
}
