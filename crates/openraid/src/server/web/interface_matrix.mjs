// The console's modules on a page that has no browser: what is written on it for each array, as JSON.
//
//     node interface_matrix.mjs FOLDER-OF-THE-CONSOLE < ARRAYS-OF-THE-API
//
// Elements have children and a text, which is all that the modules need here. The server is an object with the documents.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

class Element {
  constructor(kind) { this.kind = kind; this.children = []; this.dataset = {}; this.style = {}; this.attributes = {}; this.listeners = {}; this.className = ""; this.id = ""; }
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
  all(test) { const below = this.children.filter((own) => own instanceof Element); return below.filter(test).concat(below.flatMap((own) => own.all(test))); }
}
class Cell extends Element {}

const { arrays, words } = JSON.parse(readFileSync(0, "utf8"));
const fixed = { main: new Element("main"), top: new Element("header"), say: new Element("div") };
const heard = {};
/** Changes that the pages have asked for. */
const orders = [];
/** The last text that a button copied. */
let copied = null;
Object.defineProperty(globalThis, "navigator", { value: { clipboard: { writeText: async (text) => { copied = text; } } } });
Object.assign(globalThis, {
  HTMLElement: Element, HTMLTableCellElement: Cell, location: { hash: "" }, history: { replaceState() {} },
  localStorage: { getItem: () => null, setItem() {} }, addEventListener: (kind, listener) => { heard[kind] = listener; },
  EventSource: class { addEventListener(kind, listener) { heard[kind] = listener; } close() {} },
  document: { createElement: (kind) => (kind === "td" ? new Cell(kind) : new Element(kind)), createElementNS: (_, kind) => new Element(kind),
    getElementById: (id) => fixed[id] || null, activeElement: null, body: new Element("body"), documentElement: new Element("html") },
  fetch: async (path, { method, body } = {}) => {
    if (method && method !== "GET") orders.push({ method, path, body: JSON.parse(body) });
    const of = (name) => shown.find((own) => path === `/api/v1/arrays/${encodeURIComponent(own.name)}${name}`);
    const documents = { [of("") ? path : "-"]: of(""), [of("/locate") ? path : "-"]: { text: "done", array: null }, "/api/v1/session": { user: "ann", role: "Administrator" }, "/api/v1/arrays": { arrays } };
    const known = documents[path];
    return { ok: Boolean(known), status: known ? 200 : 404, text: async () => JSON.stringify(known || { detail: "not here" }), headers: { get: () => null } };
  },
});

let shown = arrays;
await import(pathToFileURL(`${process.argv[2]}/main.js`).href);
const until = Date.now() + 30000;
while (!heard.status && Date.now() < until) await new Promise((then) => { setTimeout(then, 1); });
const page = (hash) => { location.hash = hash; heard.hashchange(); heard.status({ data: JSON.stringify({ arrays: shown }) }); };
const found = {};
for (const array of arrays) {
  shown = [array];
  page("#/");
  const overview = fixed.main.textContent;
  page(`#/array/${encodeURIComponent(array.name)}`);
  const cells = fixed.main.all((own) => own instanceof Cell && own.dataset.label === "State");
  copied = null;
  fixed.main.all((button) => button.id === "next-step" && !button.hidden && array.health === "offline")[0]?.listeners.click();
  const own = { copied, overview, header: fixed.top.textContent, array: fixed.main.textContent, members: cells.map((cell) => cell.textContent) };
  page("#/drives");
  found[array.name] = { ...own, drives: fixed.main.all((cell) => cell instanceof Cell && cell.dataset.label === "State").map((cell) => cell.textContent) };
}
// The light of a drive: the button of a member that has one, and then the button of the dialog; on, and off.
const lit = arrays.find((own) => own.members.some((member) => member.member && member.drive !== null));
shown = [lit];
page(`#/array/${encodeURIComponent(lit.name)}`);
fixed.main.all((own) => own.kind === "button" && own.textContent === "Locate")[0].listeners.click();
for (let nth = 1; nth <= 2; nth += 1) {
  while (document.body.all((own) => own.kind === "form").length < nth && Date.now() < until) await new Promise((then) => { setTimeout(then, 1); });
  document.body.all((own) => own.kind === "form")[nth - 1].listeners.submit({ preventDefault() {} });
  while (orders.length < nth && Date.now() < until) await new Promise((then) => { setTimeout(then, 1); });
}
found.orders = orders;
// Command lines with words that a shell would take for something else.
const { command } = await import(pathToFileURL(`${process.argv[2]}/words.js`).href);
found.commands = words.map((word) => command("show", [word, "d 1"], "--follow"));
// Where the button of such a line leads: to the same array and member, or nowhere.
const { leadsTo } = await import(pathToFileURL(`${process.argv[2]}/steps.js`).href);
found.steps = words.map((word) => leadsTo(command("remove", [word, "d 1"]))?.href.split("/").slice(1).map(decodeURIComponent) || null);
// A name as an instance of a unit.
const { instance } = await import(pathToFileURL(`${process.argv[2]}/disk.js`).href);
found.instances = words.map(instance);
process.stdout.write(JSON.stringify(found), () => process.exit(0));
