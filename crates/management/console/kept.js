// What the console sets of the server beside its configuration file: cache, journal, spares for all arrays, sinks, names for clients.

import { h, ask, field, say, select, table } from "./ui.js";
import { call, get, may } from "./api.js";
import { driveChoice } from "./drives.js";

/** Change it, and say what is in force and what waits for a restart. @param {object} input @param {() => any} load */
async function keep(input, load) {
  const { text } = (await call("PATCH", "/kept", input)).value;
  say(text);
  load();
}

const value = (own, name) => own.server.find((one) => one.key === name)?.value || "none";

/** Cache and journal: they take effect at the next start. */
export function serverParts(own, kept, load) {
  const cache = () => {
    const input = h("input", { value: kept.cache || "", placeholder: "1G", spellcheck: false });
    ask({ title: "Cache of the server", button: "Set", text: "Memory in which the server keeps what was read, and writes of arrays that are set so. It takes effect at the next start of the server.",
      fields: field("Size", input, "As in 64M or 1G, at most half of the memory that is free; empty: as the configuration file has it."), act: () => keep({ cache: input.value.trim() }, load) });
  };
  const journal = () => {
    const devices = h("textarea", { rows: 2, spellcheck: false, value: kept.journal.join("\n"), placeholder: "/dev/disk/by-id/\u2026" });
    const lines = () => devices.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const drive = driveChoice();
    const take = () => { const path = drive.value(); if (path && !lines().includes(path)) devices.value = [...lines(), path].join("\n"); };
    ask({ title: "Journal of the server", button: "Set", text: "One device, or two of which each has everything. Writes of arrays with write.cache=journal are done when they are on it. It takes effect at the next start of the server.",
      fields: [field("Drive that nothing uses", drive.choice), drive.path, h("p", {}, h("button", { type: "button", id: "take-journal", onclick: take }, "Take it")), field("Devices", devices, "One path on each line; empty: as the configuration file has it."), h("p", { className: "hint" }, "A device is made a journal first, on the machine; what it holds is lost:"), h("pre", {}, "sudo openraid journal create /dev/disk/by-id/\u2026")],
      act: () => keep({ journal: lines() }, load) });
  };
  return [h("h3", {}, "Cache and journal"), table("Cache and journal", ["What", "Now", "From the next start", "Actions"], [
    ["Cache: memory for what was read, and for writes", value(own, "cache"), kept.cache || "\u2013", h("td", { className: "act" }, h("button", { id: "set-cache", onclick: cache }, "Set the cache"))],
    ["Journal: makes writes safe before they are on the members", value(own, "journal"), kept.journal.join(", ") || "\u2013", h("td", { className: "act" }, h("button", { id: "set-journal", onclick: journal }, "Set the journal"))]])];
}

/** Spares for all arrays. */
export function spareParts(own, kept, load) {
  const add = () => {
    const drive = driveChoice();
    ask({ title: "Add a spare for all arrays", button: "Add", text: "The first array that lacks a member takes it. It must be empty, and as large as the members; nothing is written to it before.", fields: [field("Drive", drive.choice), drive.path],
      act: () => keep({ spares: [...kept.spares, drive.value()] }, load) });
  };
  const drop = (member) => keep({ spares: kept.spares.filter((one) => one !== member) }, load).catch((problem) => say(problem.message));
  const rows = own.spares.map((spare) => [spare.member, spare.array || "all arrays", spare.line ? `line ${spare.line}` : "kept by the server",
    h("td", { className: "act" }, spare.line || !may("Administrator") ? null : h("button", { "aria-label": `Remove spare ${spare.member}`, onclick: () => drop(spare.member) }, "Remove"))]);
  return [h("h3", {}, "Spares"), rows.length ? table("Spares", ["Drive", "For", "From", "Actions"], rows) : h("p", {}, "No spare waits for all arrays."), kept ? h("button", { id: "add-common-spare", onclick: add }, "Add a spare for all arrays") : null];
}

/** The button that adds a sink, and the one that removes a kept one. */
export function addSink(kept, load) {
  const name = h("input", { spellcheck: false, autocomplete: "off" });
  const level = select([["warning", "warnings and worse"], ["critical", "critical alone"], ["info", "everything"]], "warning");
  const kind = select([["webhook", "webhook: a document to a web server"], ["mail", "mail"], ["journald", "journald: the journal of systemd"]], "webhook");
  const url = h("input", { type: "url", placeholder: "https://HOST/PATH" });
  const form = select([["json", "openraid's own"], ["alertmanager", "Alertmanager's"]], "json");
  const server = h("input", { placeholder: "mail.example.org:587" });
  const tls = select([["starttls", "STARTTLS"], ["tls", "TLS from the beginning"], ["none", "none"]], "starttls");
  const from = h("input", { placeholder: "openraid@example.org" });
  const to = h("input", { placeholder: "admin@example.org" });
  const web = h("div", {}, field("Address", url), field("Form", form));
  const mail = h("div", { hidden: true }, field("Mail server", server), field("Encryption", tls), field("From", from), field("To", to, "Several with commas."));
  kind.addEventListener("change", () => { web.hidden = kind.value !== "webhook"; mail.hidden = kind.value !== "mail"; });
  const text = (input) => input.value.trim() || null;
  ask({ title: "Add a sink", button: "Add", text: "Alarms are sent there. Programs, and mail with a password, stand in the configuration file, because they reach more than alarms.", fields: [field("Name", name), field("From level", level), field("Kind", kind), web, mail],
    act: () => {
      const own = { name: name.value.trim(), kind: kind.value, level: level.value };
      const more = kind.value === "webhook" ? { url: text(url), form: form.value } : kind.value === "mail" ? { server: text(server), tls: tls.value, from: text(from), to: to.value.split(/[\s,]+/).filter(Boolean) } : {};
      return keep({ sinks: [...kept.sinks.filter((one) => one.name !== own.name), { ...own, ...more }] }, load);
    } });
}
/** @param {any} kept @param {string} name @param {() => any} load */
export const dropSink = (kept, name, load) => keep({ sinks: kept.sinks.filter((one) => one.name !== name) }, load).catch((problem) => say(problem.message));

/** Names under which clients find an array. @param {any} array */
export async function setExports(array) {
  let kept;
  try { kept = await get("/kept"); } catch (problem) { say(problem.message); return; }
  const names = h("textarea", { rows: 3, spellcheck: false, value: (kept.exports[array.uuid || array.name] || array.exports).join("\n") });
  ask({ title: `Names of ${array.name} for clients`, button: "Set", text: "Clients find the array by each of them. Clients of a name that is removed stay until they disconnect.", fields: field("Names", names, `One on each line; empty: ${array.name}.`),
    act: () => keep({ exports: { [array.name]: names.value.split("\n").map((line) => line.trim()).filter(Boolean) } }, () => {}) });
}
