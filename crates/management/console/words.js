// Words for settings, figures and profiles. An array's state comes in words from the server (`sentence`, `text`, `next_step`), which
// says the same on every interface; none of it is made here.

import { h, duration } from "./ui.js";

export const sets = (array) => (array.spans.length ? array.spans : [array]);
export const members = (array) => sets(array).flatMap((set, span) => set.members.map((member) => ({ ...member, span: array.spans.length ? span : null })));
export const tasks = (array) => sets(array).map((set) => set.task).filter(Boolean);
export const level = (array) => array.level.replace(/^raid/, "RAID ").replace("jbod", "Raw drive").replace("single", "Single");
export const count = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;
export const millis = (nanos) => `${(nanos / 1e6).toFixed(nanos < 1e7 ? 3 : 1)} ms`;
export const percentText = (share) => (share > 0 && share < 0.0001 ? "below 0.01 %" : `${(share * 100).toFixed(2)} %`);
export const STATES = { running: "runs", done: "done", failed: "failed", cancelled: "cancelled" };

export function percent(task) {
  return task.total_bytes ? Math.floor((task.done_bytes * 100) / task.total_bytes) : 100;
}

export const arrayLink = (name) => h("a", { href: `#/array/${encodeURIComponent(name)}` }, name);
export const stateKind = (state) => ({ "in-sync": "optimal", spare: "optimal", rebuilding: "degraded", replaced: "degraded", missing: "failed", failing: "failed", faulty: "failed" })[state] || "";

/** The speed that a simulated array has, and the time of a rebuild. */
export const speed = (own) => (own ? `${Math.round(own.iops)} requests/s, ${own.mean_ms.toFixed(own.mean_ms < 10 ? 2 : 1)}\u00a0ms` : "\u2013");
export const hours = (own) => (own === null || own === undefined ? "\u2013" : own * 3600 < 1 ? "below 1\u00a0s" : duration(Math.round(own * 3600)));
export const sentenceCase = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** States and settings in words: the server's own are for programs. */
export const WRITES = { through: "acknowledged when they are on the members", journal: "acknowledged when they are in the journal; nothing is lost in a power cut", volatile: "acknowledged from memory; what was not flushed is lost in a power cut" };
export const CACHES = { through: "write-through", journal: "write-back, in the journal", volatile: "write-back, in memory only" };
export const CRASH = { resync: "everything is read and made equal", bitmap: "only what the bitmap marks is made equal", ppl: "partial parity on the members closes the write hole", "controller-journal": "the journal repeats the last writes" };
export const FROM = { file: "configuration file", "command-line": "command line", set: "changed later" };
/** Settings of the server, by their keys in the configuration file. */
const KEYS = {
  "nbd": "NBD at", "nbd-unix": "NBD at sockets of this machine", "nbd-tls": "NBD over TLS at", "nbd-tls-certificate": "Certificate of NBD", "nbd-tls-key": "Key of NBD", "nbd-tls-client-ca": "Authority of NBD clients", "nvme": "NVMe/TCP at",
  "cache": "Cache", "journal": "Journal", "management.listen": "Console, API and Redfish at", "management.certificate": "Certificate of the console", "management.key": "Key of the console", "management.client-ca": "Authority of the console's clients",
  "management.names": "Names of this machine", "management.metrics-md": "Metrics under md's names", "management.drives": "Drives for new arrays", "care.idle-probe": "Idle drives are tried after", "care.smart": "Drives are asked for their health every",
  "care.slow-window": "Drives are compared over", "care.smartctl": "Program for the health of drives", "care.led": "Program for the lights of bays",
};
/** @param {string} key */
export const keyWords = (key) => (KEYS[key] ? `${KEYS[key]} (${key})` : key);
export const CLASSES = { rotating: "rotating drive", ssd: "SSD" };
export const className = (own, many) => (CLASSES[own] ? `${CLASSES[own]}${many ? "s" : ""}` : "not known");
/** Model, firmware and serial number of a member's drive, and its place: as the kernel or the drive itself has them. */
export function named(m) {
  const smart = m.smart || {};
  const parts = [m.model || smart.model, smart.firmware && `firmware ${smart.firmware}`, (m.serial || smart.serial) && `serial ${m.serial || smart.serial}`, m.bay && `bay ${m.bay}`];
  return parts.filter(Boolean).join(", ") || "\u2013";
}
export const errors = (own) => (own.media_errors || own.bad_ranges ? `${count(own.media_errors, "media error")}, ${count(own.bad_ranges, "bad range")}` : "none");

/** A word as a shell must read it, and a command line with such words: what the server writes is the same. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const octal = (text) => [...new TextEncoder().encode(text)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
export const word = (text) => {
  if (/^[A-Za-z0-9._/:=,@%+-]+$/.test(text)) return text;
  if (text.search(UNSEEN) < 0) return `'${text.replaceAll("'", "'\\''")}'`;
  return `$'${text.replace(/[\\']/g, "\\$&").replace(UNSEEN, octal)}'`;
};
export const command = (verb, words, options = "") => {
  const [space, all] = [options ? " " : "", words.map((own) => word(String(own))).join(" ")];
  return words.some((own) => String(own).startsWith("-")) ? `openraid ${verb}${space}${options} -- ${all}` : `openraid ${verb} ${all}${space}${options}`;
};
