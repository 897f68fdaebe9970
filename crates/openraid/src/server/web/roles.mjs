// All pages of the console as a user of one role sees them, on the documents of a real server: every button is pressed, every
// form sent. What the server would refuse is reported, as JSON. No change reaches the server.
//
//     node roles.mjs FOLDER-OF-THE-CONSOLE ADDRESS TOKEN

import { pathToFileURL } from "node:url";
import { begin, fixed, heard, page, until } from "./browser.mjs";

const [, , folder, address, token] = process.argv;
const ROLES = ["ReadOnly", "Operator", "Administrator"];
const real = globalThis.fetch;
const ask = async (path) => {
  const answer = await real(`${address}${path}`, { headers: { Authorization: `Bearer ${token}` } });
  return { ok: answer.ok, status: answer.status, text: await answer.text() };
};
const { paths } = JSON.parse((await ask("/api/v1/openapi.json")).text);
const { role } = JSON.parse((await ask("/api/v1/session")).text);
/** The role that a request needs; none if every user may send it. */
function needs(method, path) {
  const is = (template) => new RegExp(`^${template.replace(/[.]/g, "\\.").replace(/\{[^}]*\}/g, "[^/]+")}$`).test(path.split("?")[0]);
  const known = Object.keys(paths).filter(is).sort((a, b) => a.split("{").length - b.split("{").length)[0];
  if (!known) throw new Error(`${method} ${path}: no such route`);
  return / Needs the role (\w+)\.$/.exec(paths[known][method.toLowerCase()].description)?.[1];
}
const found = { role, pressed: 0, orders: [], refused: [] };
/** Where a request comes from. */
let from = "";
const check = (method, path) => {
  const needed = needs(method, path);
  if (ROLES.indexOf(needed) > ROLES.indexOf(role)) found.refused.push(`${from}: ${method} ${path} needs ${needed}`);
};

let pending = 0;
const kept = new Map();
const server = async (path, { method = "GET" } = {}) => {
  pending += 1;
  try {
    check(method, path);
    if (method !== "GET") {
      found.orders.push(`${method} ${path}`);
      return { ok: false, status: 409, text: async () => JSON.stringify({ detail: "not done" }), headers: { get: () => null } };
    }
    if (!kept.has(path)) kept.set(path, ask(path));
    const { ok, status, text } = await kept.get(path);
    return { ok, status, text: async () => text, json: async () => JSON.parse(text), headers: { get: () => null } };
  } finally { pending -= 1; }
};
begin(server);
const settled = async () => {
  for (let quiet = 0; quiet < 3; quiet += 1) {
    await new Promise((then) => { setTimeout(then, 0); });
    if (pending) quiet = 0;
  }
};

await import(pathToFileURL(`${folder}/main.js`).href);
await until(() => heard.status);
await settled();
const { arrays } = JSON.parse((await ask("/api/v1/arrays")).text);
const show = async (hash) => {
  document.body.children = [];
  fixed.say.textContent = "";
  page(hash, arrays);
  heard.log({ data: "{}" });
  await settled();
  fixed.main.seen((own) => own.kind === "details" && own.listeners.toggle).forEach((own) => { own.open = true; own.listeners.toggle(); });
  await settled();
};
const send = async (forms) => {
  forms.forEach((form) => form.listeners.submit?.({ preventDefault() {} }));
  await settled();
};
/** Buttons of one kind are pressed once, whatever array or member they are for. */
const kinds = new Set();
const kindOf = (button) => [location.hash.split("/")[1], button.id.replace(/\d+/g, ""), button.textContent, ...(button.attributes["aria-label"] || "").split(" ").slice(0, 2)].join(" ");
const isNew = (button) => !kinds.has(kindOf(button));
const dead = () => [fixed.say, fixed.main].some((part) => /Only (operators and administrators change|administrators make)/.test(part.textContent));
const links = ["#/", "#/drives", "#/journal", "#/lab", "#/events", "#/settings", ...arrays.map((own) => `#/array/${encodeURIComponent(own.name)}`)];
for (let nth = 0; nth < links.length; nth += 1) {
  const hash = links[nth];
  from = hash;
  await show(hash);
  if (dead()) found.refused.push(`${hash}: a link leads there, and the page refuses`);
  for (const link of fixed.main.seen((own) => own.kind === "a")) {
    if (link.href.startsWith("/api/")) check("GET", link.href);
    else if (link.href.startsWith("#/") && !links.includes(link.href)) links.push(link.href);
  }
  await send(fixed.main.seen((own) => own.kind === "form"));
  for (let more = true; more;) {
    await show(hash);
    const button = fixed.main.seen((own) => own.kind === "button" && own.listeners.click).find(isNew);
    more = Boolean(button);
    if (!button) break;
    kinds.add(kindOf(button));
    found.pressed += 1;
    from = `${hash}, ${button.attributes["aria-label"] || button.textContent}`;
    await button.listeners.click();
    await settled();
    await send(document.body.all((own) => own.kind === "form"));
    from = hash;
  }
}
found.orders = [...new Set(found.orders.map((order) => order.replace(/arrays\/[^/]+/, "arrays/*")))].sort();
found.refused = [...new Set(found.refused)].sort();
found.pages = links.length;
process.stdout.write(JSON.stringify(found), () => process.exit(0));
