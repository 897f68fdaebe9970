import { h, keyed, bytes, say, table, tag, toCreate, fill } from "./ui.js";
import { get, state } from "./api.js";
import { arrayLink, className, count, errors, members, millis, named, stateKind } from "./words.js";

/** What a drive says of its own health. */
function health(smart) {
  if (!smart) return "not known";
  const parts = [smart.passed === null ? "no verdict" : smart.passed ? "passed" : "failing", smart.temperature_celsius === null ? null : `${smart.temperature_celsius} \u00b0C`, smart.used_percent === null ? null : `${smart.used_percent} % worn`,
    smart.reallocated_sectors ? `${smart.reallocated_sectors} reallocated` : null, smart.pending_sectors ? `${smart.pending_sectors} pending` : null, smart.power_on_hours === null ? null : `${smart.power_on_hours} h on`];
  return tag(parts.filter(Boolean).join(", "), smart.passed === false ? "critical" : "");
}

/** How long a command takes, and one of most other members. */
const took = (own) => (own ? [`${millis(own.own)} each`, own.others.length ? `others ${millis(own.others[Math.floor(own.others.length / 2)])}` : null].filter(Boolean) : []);

const COLUMNS = ["Drive", "Model, serial, bay", "Class and link", "Health", "Size", "Array", "State", "Its cache", "Work", "Errors"];

/** What is wrong with it, and notes on its use. */
function row(m, nth) {
  const drive = h("td", { className: "path" }, m.member, m.alarms.map((alarm) => h("p", {}, tag(alarm.level, alarm.level), ` ${alarm.text}`)), m.notes.length ? h("p", { className: "hint" }, m.notes.join("; ")) : null);
  return [drive, named(m), [className(m.class), m.smart?.link].filter(Boolean).join(", "), health(m.smart), bytes(m.size_bytes), [arrayLink(m.array), m.slot === null ? "" : `, slot ${m.slot}`], tag(m.text, stateKind(m.state)), m.drive_cache || "unknown", h("td", { id: `work-${nth}` }), errors(m)];
}

/** A drive that nothing uses, in words. */
const unusedText = (own) => [bytes(own.size_bytes), own.model, own.serial, own.rotates ? "rotating" : "SSD", own.holds ? `holds ${own.holds}` : "empty"].filter(Boolean).join(", ");

/** The block devices of the machine that nothing uses, and the drives that the configuration names.
 * @returns {Promise<[string, string][]>} paths with their words */
export async function freeDrives() {
  const found = await get("/drives");
  const others = found.free.filter((path) => !found.unused.some((own) => [own.path, own.device].includes(path)));
  return [...found.unused.map((own) => [own.path, unusedText(own)]), ...others.map((path) => [path, "named by the configuration"])];
}

/** A choice among the drives that nothing uses; the last entry takes a path.
 * @param {string} [empty] text of the choice of none
 * @param {string} [chosen] a path to begin with */
export function driveChoice(empty, chosen = "") {
  const choice = h("select", {}, h("option", { value: "" }, "Looking for drives \u2026"));
  const path = h("input", { placeholder: "/dev/disk/by-id/\u2026", spellcheck: false, hidden: true, value: chosen, "aria-label": "Path of the drive" });
  choice.addEventListener("change", () => { path.hidden = choice.value !== "path"; });
  freeDrives().catch(() => []).then((all) => {
    fill(choice, ...(empty ? [h("option", { value: "" }, empty)] : []), ...all.map(([own, text]) => h("option", { value: own }, `${own} (${text})`)), h("option", { value: "path" }, "another path"));
    if (chosen) choice.value = all.some(([own]) => own === chosen) ? chosen : "path";
    path.hidden = choice.value !== "path";
  });
  return { choice, path, value: () => (choice.value === "path" ? path.value.trim() : choice.value) };
}

export function page(main) {
  const list = h("section", { className: "card" });
  const free = h("section", { className: "card", hidden: true });
  main.append(h("h1", {}, "Drives"), list, free);
  freeDrives().then((all) => {
    free.hidden = !all.length;
    fill(free, h("h2", {}, "Free drives"), h("p", {}, "Nothing uses them. ", toCreate("Create an array"), " takes them; the page of an array adds one as a spare."), table("Free drives", ["Drive", "Size, model, serial, content"], all));
  }, (problem) => say(problem.message));
  /** Mean times of the last seconds, by drive. @type {Record<string, { own: number, others: number[] }>} */
  let times = {};
  let ticks = 0;
  const ask = async () => {
    const found = {};
    for (const array of state.arrays) {
      const parts = (await get(`/arrays/${encodeURIComponent(array.name)}/limit`)).parts.filter((part) => part.part === "member" && part.name && part.commands);
      parts.forEach((part) => { found[part.name] = { own: part.service_ns, others: parts.filter((other) => other !== part).map((other) => other.service_ns).sort((a, b) => a - b) }; });
    }
    times = found;
  };
  return () => {
    if ((ticks += 1) % 3 === 1) ask().catch(() => {});
    const all = state.arrays.flatMap((array) => members(array).filter((m) => m.member).map((member) => ({ array: array.name, alarms: array.alarms.filter((alarm) => alarm.member === member.member && !alarm.until_seconds), ...member })));
    keyed(list, all.map((m) => [m.array, m.slot, m.member, m.text, m.media_errors, m.bad_ranges, m.notes, m.smart, m.alarms.map((alarm) => [alarm.id, alarm.text])]), () => all.length ? table("Drives", COLUMNS, all.map(row)) : h("p", {}, "No array is served."));
    all.forEach((m, nth) => {
      const cell = document.getElementById(`work-${nth}`);
      const lines = [`${count(m.reads, "read")}, ${bytes(m.read_bytes)}`, `${count(m.writes, "write")}, ${bytes(m.written_bytes)}`, `${m.outstanding} now`, ...took(times[m.member])];
      if (cell) keyed(cell, lines, () => h("span", {}, lines.map((line) => h("span", { className: "line" }, line))));
    });
  };
}
