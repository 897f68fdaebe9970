// The next step that the server advises is a command line. Here it is a button that leads to the same action of the console.

import { h } from "./ui.js";
import { may } from "./api.js";

/** The words of a command line as a shell has them; nothing if it has more than words and single quotes. @param {string} line */
function wordsOf(line) {
  const found = [...line.matchAll(/(?:[^\s'$`"\\]|'[^']*'|\\')+/g)].map(([word]) => word.replace(/\\'/g, "\u0000").replaceAll("'", "").replaceAll("\u0000", "'"));
  return /[$`"]/.test(line.replace(/'[^']*'/g, "")) ? null : found;
}

const link = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

/** Where a command line leads: the page, and the words of the button. An action is a part of the address.
 * @param {string | null | undefined} line @returns {{ href: string, text: string, changes?: boolean } | null} */
export function leadsTo(line) {
  const [program, ...rest] = (line && wordsOf(line)) || [];
  if (program !== "openraid") return null;
  // Words after -- are no options, whatever they begin with.
  const end = rest.includes("--") ? rest.indexOf("--") : rest.length;
  const words = [...rest.slice(0, end).filter((word) => !word.startsWith("-")), ...rest.slice(end + 1)];
  if (words[0] === "spare") words.shift();
  const [verb, array, member] = words;
  const it = /^(drive|slot):/.test(member) ? "the drive" : member;
  const of = (text) => ({ href: link("array", array, verb, ...(member && member !== "DRIVE" ? [member] : [])), text, changes: true });
  switch (verb) {
    case "add": return of("Add a drive");
    case "remove": return of(`Remove ${it}`);
    case "replace": return of(`Replace ${it}`);
    case "fail": return of(`Fail ${it}`);
    case "check": return of("Check it");
    case "repair": return of("Repair it");
    case "resume": return of("Resume it");
    case "set": return { href: link("array", array, verb), text: "Change settings", changes: true };
    case "show": case "doctor": return array ? { href: link("array", array), text: `Look at ${array}` } : null;
    case "journal": return { href: "#/journal", text: "See the journal" };
    case "alarms": case "config": case "reload": return { href: "#/settings", text: "See the settings" };
    case "list": return { href: "#/", text: "See all arrays" };
    default: return null;
  }
}

/** The button of a command line, and the line itself. @param {string | null | undefined} line */
export function nextStep(line) {
  const to = leadsTo(line);
  const shown = to && (!to.changes || may("Operator")) && to.href !== location.hash;
  return [shown ? h("a", { className: "button", href: to.href }, to.text) : null, line ? h("code", {}, line) : null];
}
