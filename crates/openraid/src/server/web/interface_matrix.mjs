// The console's modules on a page that has no browser: what is written on it for each array, as JSON.
//
//     node interface_matrix.mjs FOLDER-OF-THE-CONSOLE < ARRAYS-OF-THE-API
//
// The server is an object with the documents.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { begin, Cell, fixed, heard, page as open, until } from "./browser.mjs";

const { arrays, words } = JSON.parse(readFileSync(0, "utf8"));
/** Changes that the pages have asked for. */
const orders = [];
/** The last text that a button copied. */
let copied = null;
/** Alarms of the server itself. */
let alarms = [];
begin(async (path, { method, body } = {}) => {
  if (method && method !== "GET") orders.push({ method, path, body: JSON.parse(body) });
  const of = (name) => shown.find((own) => path === `/api/v1/arrays/${encodeURIComponent(own.name)}${name}`);
  const documents = { [of("") ? path : "-"]: of(""), [of("/locate") ? path : "-"]: { text: "done", array: null }, "/api/v1/session": { user: "ann", role: "Administrator" }, "/api/v1/arrays": { arrays }, "/api/v1/alarms?level=warning": { alarms } };
  const known = documents[path];
  return { ok: Boolean(known), status: known ? 200 : 404, text: async () => JSON.stringify(known || { detail: "not here" }), headers: { get: () => null } };
}, (text) => { copied = text; });

let shown = arrays;
await import(pathToFileURL(`${process.argv[2]}/main.js`).href);
await until(() => heard.status);
const page = (hash) => open(hash, shown);
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
const forms = () => document.body.all((own) => own.kind === "form");
for (let nth = 1; nth <= 2; nth += 1) {
  await until(() => forms().length >= nth);
  forms()[nth - 1].listeners.submit({ preventDefault() {} });
  await until(() => orders.length >= nth);
}
found.orders = orders;
// No array is served, and an alarm says why.
shown = [];
page("#/");
const header = () => ({ text: fixed.top.textContent, links: fixed.top.all((own) => own.kind === "a").map((own) => own.href), kinds: fixed.top.all((own) => own.className.startsWith("health ")).map((own) => own.className) });
found.empty = header();
alarms = [{ id: "server:StartProblem:registry", level: "critical", text: "no recorded array is served", acknowledged_seconds: null }];
heard.log({ data: "{}" });
await until(() => header().text !== found.empty.text);
found.unreadable = header();
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
