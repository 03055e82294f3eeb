// As much of a DOM as web/lib needs. There is no innerHTML: code that used it would fail here.
class Node {
  constructor() { this.parent = null; }
  get isConnected() { return true; }
  remove() {
    if (this.parent) this.parent.childNodes.splice(this.parent.childNodes.indexOf(this), 1);
    this.parent = null;
  }
  before(...nodes) { this.parent.insert(this.parent.childNodes.indexOf(this), nodes); }
}

class Text extends Node {
  constructor(data) { super(); this.data = String(data); }
  get length() { return this.data.length; }
  get textContent() { return this.data; }
  appendData(text) { this.data += text; }
}

class Element extends Node {
  constructor(name) {
    super();
    Object.assign(this, { name, childNodes: [], className: "", listeners: [] });
    this.classList = { add: (n) => { if (!this.className.split(" ").includes(n)) this.className = `${this.className} ${n}`.trim(); } };
  }
  insert(at, nodes) {
    for (let n of nodes) {
      if (!(n instanceof Node)) n = new Text(n);
      const all = n.name === "#fragment" ? [...n.childNodes] : [n];
      for (const one of all) {
        one.remove();
        one.parent = this;
        this.childNodes.splice(at++, 0, one);
      }
    }
  }
  append(...nodes) { this.insert(this.childNodes.length, nodes); }
  replaceChildren(...nodes) {
    for (const c of [...this.childNodes]) c.remove();
    this.append(...nodes);
  }
  addEventListener(name) { this.listeners.push(name); }
  get textContent() { return this.childNodes.map((c) => c.textContent).join(""); }
  all(name) { return [...(this.name === name ? [this] : []), ...this.childNodes.flatMap((c) => (c.all ? c.all(name) : []))]; }
  get outline() { // neighbours that are text are one text
    const inner = [];
    for (const c of this.childNodes) {
      if (c instanceof Text) {
        if (typeof inner.at(-1) === "string") inner[inner.length - 1] += c.data;
        else if (c.data) inner.push(c.data);
      } else inner.push(c.outline);
    }
    return [this.name, this.className, this.href ?? "", this.start ?? "", ...inner];
  }
}

export const document = {
  hidden: false,
  createElement: (name) => new Element(name),
  createTextNode: (data) => new Text(data),
  createDocumentFragment: () => new Element("#fragment"),
};
globalThis.document = document;
