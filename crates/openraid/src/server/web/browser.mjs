// A page without a browser: elements have children, a text and listeners, which is all that the console's modules need here.

export class Element {
  constructor(kind) { Object.assign(this, { kind, children: [], dataset: {}, style: {}, attributes: {}, listeners: {}, className: "", id: "", hidden: false, disabled: false, checked: false, selected: false, open: false, href: "" }); }
  append(...more) { this.children.push(...more); }
  replaceChildren(...all) { this.children = all; }
  setAttribute(name, value) { this.attributes[name] = value; }
  addEventListener(kind, listener) { this.listeners[kind] = listener; }
  showModal() {}
  close() {}
  remove() {}
  contains() { return false; }
  querySelector() { return null; }
  focus() {}
  get textContent() { return this.children.map((own) => (own instanceof Element ? own.textContent : String(own))).join(" "); }
  set textContent(text) { this.children = [text]; }
  get value() { return this.typed ?? (this.kind === "select" ? this.all((own) => own.selected).concat(this.all((own) => own.kind === "option"))[0]?.value : undefined) ?? ""; }
  set value(text) { this.typed = text; }
  all(test) { const below = this.children.filter((own) => own instanceof Element); return below.filter(test).concat(below.flatMap((own) => own.all(test))); }
  /** As `all`, without hidden elements. */
  seen(test) { const below = this.children.filter((own) => own instanceof Element && !own.hidden); return below.filter(test).concat(below.flatMap((own) => own.seen(test))); }
}
export class Cell extends Element {}

/** The parts of the page that are always there. */
export const fixed = { main: new Element("main"), top: new Element("header"), say: new Element("div") };
/** What listens to the window and to the stream of events. */
export const heard = {};

/** Make this page the global one. @param {(path: string, options?: object) => Promise<any>} fetch asks the server @param {(text: string) => void} copy */
export function begin(fetch, copy = () => {}) {
  Object.defineProperty(globalThis, "navigator", { value: { clipboard: { writeText: async (text) => copy(text) } } });
  Object.assign(globalThis, {
    HTMLElement: Element, HTMLTableCellElement: Cell, location: { hash: "" }, history: { replaceState() {} },
    localStorage: { getItem: () => null, setItem() {} }, addEventListener: (kind, listener) => { heard[kind] = listener; },
    EventSource: class { addEventListener(kind, listener) { heard[kind] = listener; } close() {} },
    document: { createElement: (kind) => (kind === "td" ? new Cell(kind) : new Element(kind)), createElementNS: (_, kind) => new Element(kind),
      getElementById: (id) => fixed[id] || null, activeElement: null, body: new Element("body"), documentElement: new Element("html") },
    fetch,
  });
}

/** Show the page of this address, with these arrays. */
export function page(hash, arrays) {
  location.hash = hash;
  heard.hashchange();
  heard.status({ data: JSON.stringify({ arrays }) });
}

/** Wait until this is so, for half a minute at most. @param {() => any} test */
export async function until(test) {
  for (const end = Date.now() + 30000; !test() && Date.now() < end;) await new Promise((then) => { setTimeout(then, 1); });
}
