// Elements, formats, dialogs. Text from the server only ever becomes text, never markup.

import { may } from "./api.js";

/** Children without those that are absent: a browser would write the word null. @param {any[]} children */
const there = (children) => children.flat(3).filter((child) => child !== null && child !== undefined && child !== false);
/**
 * Make an element: properties, `on...` listeners, attributes; children are nodes, texts or lists of both.
 * @param {string} kind of element
 * @param {Record<string, any>} [properties]
 * @param {...any} children
 * @returns {any}
 */
export function h(kind, properties = {}, ...children) {
  const element = document.createElement(kind);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && !["list", "form"].includes(key)) element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...there(children));
  return element;
}
/** Give an element these children and no others. @param {Element} element @param {...any} children */
export const fill = (element, ...children) => element.replaceChildren(...there(children));

/** A button for operators; others do not see it. @param {Record<string, any>} properties @param {...any} children */
export const operate = (properties, ...children) => (may("Operator") ? h("button", properties, ...children) : null);
/** A button for administrators; others do not see it. @param {Record<string, any>} properties @param {...any} children */
export const administer = (properties, ...children) => (may("Administrator") ? h("button", properties, ...children) : null);

/** Words that lead administrators to the page that makes an array; others cannot use it. @param {string} text */
export const toCreate = (text) => (may("Administrator") ? h("a", { href: "#/create" }, text) : text);

/** A button that copies a command line; none in a browser that gives the page no clipboard. @param {Record<string, any>} properties @param {string} line @param {string} text */
export function copying(properties, line, text) {
  const clipboard = globalThis.navigator?.clipboard;
  const button = h("button", { ...properties, hidden: !clipboard, onclick: async () => { await clipboard.writeText(line); button.textContent = "Copied"; } }, text);
  return button;
}

/** A part of the page that is always there. @param {string} id @returns {HTMLElement} */
export const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * Build a part of the page again only if what it shows has changed; the focus stays where it was.
 * @param {any} element
 * @param {any} key what it shows
 * @param {() => any} build
 */
export function keyed(element, key, build) {
  const text = JSON.stringify(key);
  if (element.shown === text) return;
  element.shown = text;
  const controls = () => /** @type {HTMLElement[]} */ ([...element.querySelectorAll("a, button, input, select, summary, textarea")]);
  const nth = element.contains(document.activeElement) ? controls().findIndex((control) => control === document.activeElement) : -1;
  const focused = nth < 0 ? null : controls()[nth];
  fill(element, build());
  if (!focused) return;
  // A control without an id is the one with the same text, at the same place if there are several.
  const same = controls().filter((control) => (focused.id ? control.id === focused.id : control.textContent === focused.textContent));
  (same.find((control) => control === controls()[nth]) || same[0])?.focus();
}

/** @param {number | null | undefined} count */
export function bytes(count) {
  if (count === null || count === undefined) return "\u2013";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let nth = 0;
  while (count >= 1024 && nth < units.length - 1) { count /= 1024; nth += 1; }
  return `${nth === 0 || count >= 100 ? Math.round(count) : count.toFixed(1)} ${units[nth]}`;
}

/** @param {number} count */
export const rate = (count) => `${bytes(count)}/s`;

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** In UTC, as the server writes times. @param {number} seconds since 1970 */
export const time = (seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
const IS_TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/;
const NOTHING = "\u2013";
/** From this many columns on, a table becomes a list below 60 rem. */
const MANY = 5;

/** @param {string} text @param {string} [kind] */
export function tag(text, kind) {
  return h("span", { className: `tag ${kind || ""}` }, text);
}

/** @param {string} label @param {string[]} columns @param {any[][]} rows */
export function table(label, columns, rows) {
  const head = h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col" }, column))));
  const body = rows.map((cells) => h("tr", {}, cells.map((cell, nth) => {
    const own = cell instanceof HTMLTableCellElement ? cell : h("td", {}, Array.isArray(cell) ? h("span", {}, cell) : (cell ?? NOTHING));
    own.dataset.label = columns[nth];
    if (own.textContent === NOTHING) own.className += " none";
    if (IS_TIME.test(own.textContent)) own.className += " one";
    return own;
  })));
  return h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": label },
    h("table", { className: columns.length >= MANY ? "stack many" : "stack" }, head, h("tbody", {}, body)));
}

/** @param {(any[] | null)[]} pairs names with values */
export function facts(pairs) {
  return h("dl", {}, pairs.flatMap((pair) => (pair ? [pair] : [])).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value ?? "\u2013")]));
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let hides;
/** @param {string} text */
export function say(text) {
  const element = part("say");
  element.textContent = text;
  clearTimeout(hides);
  hides = setTimeout(() => { element.textContent = ""; }, 8000);
}

/**
 * A field with its label.
 * @param {string} label
 * @param {any} input
 * @param {string} [hint]
 */
export function field(label, input, hint) {
  input.id ||= `f-${label.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  const parts = [h("label", { htmlFor: input.id }, label), input];
  if (hint) {
    parts.push(h("p", { className: "hint", id: `${input.id}-hint` }, hint));
    input.setAttribute("aria-describedby", `${input.id}-hint`);
  }
  return h("div", {}, parts);
}

/** @param {(string | string[])[]} options words, or words with texts @param {string} [value] */
export function select(options, value) {
  return h("select", {}, options.map((own) => {
    const [key, text] = Array.isArray(own) ? own : [own, own];
    return h("option", { value: key, selected: key === value }, text);
  }));
}

/** A size as a setting takes it. @param {number} count */
export function written(count) {
  if (!count) return "none";
  const size = [1073741824, 1048576, 1024].find((own) => count % own === 0);
  return size ? `${count / size}${size === 1024 ? "K" : size === 1048576 ? "M" : "G"}` : String(count);
}

/** Dialogs that are open. @type {Set<HTMLDialogElement>} */
const dialogs = new Set();

/** A dialog belongs to its page. */
export const closeDialogs = () => dialogs.forEach((dialog) => dialog.close());

/**
 * Ask before something is done. With `name`, that name has to be typed. `act` does it and may refuse.
 * @param {{ title: string, text?: string, cli?: string, name?: string, fields?: any, button: string, risk?: boolean,
 *   act: (typed: string | undefined) => Promise<any> }} what
 */
export function ask({ title, text, cli, name, fields = [], button, risk, act }) {
  const typed = name ? h("input", { autocomplete: "off", spellcheck: false }) : null;
  const error = h("p", { className: "error", role: "alert" });
  const go = h("button", { className: risk ? "risk" : "main", type: "submit", disabled: Boolean(name) }, button);
  typed?.addEventListener("input", () => { go.disabled = typed.value !== name; });
  const dialog = h("dialog", { "aria-labelledby": "ask-title" },
    h("form", { method: "dialog", onsubmit: async (event) => {
      event.preventDefault();
      go.disabled = true;
      try { await act(typed?.value); dialog.close(); } catch (problem) { error.textContent = problem.message; }
      go.disabled = Boolean(name) && typed.value !== name;
    } },
    h("h2", { id: "ask-title" }, title), text && h("p", {}, text), fields,
    typed && field(`Type ${name} to confirm`, typed),
    cli && [h("p", { className: "hint" }, "The same on the command line:"), h("pre", {}, cli)],
    error, go, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")));
  dialog.addEventListener("close", () => { dialogs.delete(dialog); dialog.remove(); });
  dialogs.add(dialog);
  document.body.append(dialog);
  dialog.showModal();
}
