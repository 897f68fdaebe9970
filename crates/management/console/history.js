// The past checks, repairs and patrol reads of an array, with the findings of each member. Read when it is opened.

import { h, bytes, table, time, fill } from "./ui.js";
import { get } from "./api.js";
import { command, count } from "./words.js";

export function historyPanel(name) {
  const list = h("div", {});
  const element = h("details", { ontoggle: () => { if (element.open) read(); } }, h("summary", {}, "History of checks and patrol reads"), list);
  const read = async () => {
    try {
      const found = await get(`/arrays/${encodeURIComponent(name)}/checks`);
      const checks = found.sets.flatMap((set) => set.checks.map((own) => ({ set: set.name, ...own }))).sort((a, b) => b.at_seconds - a.at_seconds);
      fill(list, checks.length ? table("Checks", ["Ended", "Of", "Kind", "Outcome", "Members with findings"], checks.map((own) => [time(own.at_seconds), own.set, own.kind, outcome(own), findings(own)])) : h("p", {}, "No check or repair has ended yet."),
        found.patrols.length ? table("Patrol reads", ["Begun", "Ended", "Schedule", "Drives"], [...found.patrols].reverse().map((own) => [time(own.at_seconds), own.ended_seconds ? time(own.ended_seconds) : "not ended", own.schedule, own.members.map((drive) => h("span", { className: "line" }, patrolled(drive)))])) : h("p", {}, "No patrol read is known."),
        h("p", {}, h("code", {}, command("check", [name], "--history"))));
    } catch (problem) { fill(list, h("p", { className: "error" }, problem.message)); }
  };
  return element;
}

const outcome = (own) => (own.outcome === "mismatches" ? `mismatches: ${own.mismatches} sectors, ${own.repaired} repaired, ${own.left} left` : own.outcome.replace(/[-_]/g, " "));
const findings = (own) => own.members.filter((m) => m.mismatches || m.media_errors).map((m) => `slot ${m.slot}, ${m.member}: ${count(m.mismatches, "mismatch", "mismatches")}, ${count(m.media_errors, "media error")}`).join("; ") || "none";
const patrolled = (m) => `${m.member}: ${m.left_out ? `left out, ${m.left_out}` : `${bytes(m.read_bytes)} of ${bytes(m.size_bytes)} read, ${count(m.errors, "place")} unreadable${m.trouble ? `, ${m.trouble}` : ""}`}`;
