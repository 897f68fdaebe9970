// What limits an array, what the engine decided and why, and the stories of its slowest requests.

import { h, bytes, keyed, table, fill } from "./ui.js";
import { get } from "./api.js";
import { command, count, millis, sentenceCase } from "./words.js";

const STORIES = 5;
const at = (name) => `/arrays/${encodeURIComponent(name)}`;

/** The panel; `update` is called every second and gives the figures that it has read, or nothing. */
export function explainPanel(name) {
  const now = h("div", {}, h("p", {}, "Measuring the limit of the array \u2026"));
  const parts = h("div", {});
  const totals = h("div", {});
  const element = h("section", { className: "card" }, h("h2", {}, "Explain"), now, parts,
    h("details", {}, h("summary", {}, "Decisions since the array was started"), totals));
  const show = (own) => {
    const limit = own.limit;
    keyed(now, [limit.text, limit.knob], () => [h("p", {}, `${sentenceCase(limit.text)}.`), limit.knob === "none" ? null : h("p", {}, `Suggestion: ${limit.knob}.`)]);
    keyed(parts, limit.parts, () => limit.parts.length ? table("Parts of the array", ["Part", "Busy", "Commands at once", "Commands", "Each takes", "Each waits"], limit.parts.map((part) => [
      part.slot === null ? [part.part, part.name ? ` ${part.name}` : ""] : `slot ${part.slot}${part.name ? `, ${part.name}` : ""}`,
      `${part.busy_percent} %`, part.name ? (part.depth_tenths / 10).toFixed(1) : "\u2013", part.name ? String(part.commands) : "\u2013", part.name ? millis(part.service_ns) : "\u2013", part.name ? millis(part.queued_ns) : "\u2013"])) : null);
    keyed(totals, [own.reasons, own.write_amplification, own.adaptive, own.host], () => decisions(own));
  };
  return { element, read: async () => { const own = await get(`${at(name)}/explain`); show(own); return own; } };
}

function decisions(own) {
  const all = own.reasons.reduce((sum, reason) => sum + reason.count, 0) || 1;
  const reasons = [...own.reasons].sort((a, b) => b.count - a.count);
  return [h("p", {}, `Requests of hosts: ${count(own.host.reads, "read")} (${bytes(own.host.read_bytes)}), ${count(own.host.writes, "write")} (${bytes(own.host.written_bytes)}) and ${count(own.host.flushes, "flush", "flushes")}.${own.host.reads + own.host.writes ? ` Each read or write of a host cost ${own.member_reads_per_host_request} reads and ${own.member_writes_per_host_request} writes of members, background work included.` : ""}`),
    reasons.length ? table("Decisions", ["Decision", "Times", "Share"], reasons.map((reason) => [reason.text, String(reason.count), `${Math.round((reason.count * 100) / all)} %`])) : h("p", {}, "Nothing was decided yet."),
    own.host.written_bytes ? table("Written by members", ["Member", "Bytes written for each byte of a host"], own.write_amplification.map((member) => [member.member || `slot ${member.slot}`, member.written_per_host_byte])) : null,
    own.adaptive ? h("p", {}, `Adaptive: ${count(own.adaptive.switches, "change")} after ${count(own.adaptive.windows, "look")}; now read-ahead ${own.adaptive.now.read_ahead}, mirror reads ${own.adaptive.now.mirror_read}.`) : null];
}

/** The slowest requests: recorded only while this is watched. */
export function storyPanel(name) {
  const list = h("div", { "aria-live": "off" }, h("p", {}, "Press Watch to record requests. Nothing is recorded otherwise."));
  let watches = false;
  const button = h("button", { id: "watch", "aria-pressed": "false", onclick: () => {
    watches = !watches;
    button.textContent = watches ? "Stop watching" : "Watch";
    button.setAttribute("aria-pressed", String(watches));
    if (watches) read().catch(() => {});
  } }, "Watch");
  const read = async () => {
    try {
      const found = await get(`${at(name)}/stories?slowest=${STORIES}`);
      if (list.querySelector("details[open]")) return; // It is being read.
      keyed(list, found.stories.map((own) => [own.request, own.took_ns]), () => found.stories.length ? found.stories.map(story) : h("p", {}, "No request has ended since then."));
    } catch (problem) { fill(list, h("p", { className: "error" }, problem.message)); }
  };
  return { element: h("section", { className: "card" }, h("h2", {}, "Stories of slow requests"), h("p", {}, button, " ", h("code", {}, command("explain", [name], `--slowest ${STORIES}`))), list), read: () => (watches ? read() : null) };
}

/** One request: what happened, when, and how long it took, with a bar from its beginning to its end. */
function story(own) {
  const whole = own.took_ns || 1;
  const where = own.offset_bytes === null ? "" : ` of ${bytes(own.len_bytes)} at byte ${own.offset_bytes}`;
  const rows = own.steps.map((step) => {
    const bar = h("span", { className: "time", "aria-hidden": "true" });
    const inner = h("span", {});
    inner.style.marginLeft = `${Math.min(99, (step.at_ns * 100) / whole)}%`;
    inner.style.width = `${Math.max(1, Math.min(100, ((step.took_ns || 0) * 100) / whole))}%`;
    bar.append(inner);
    return [millis(step.at_ns), step.text, step.took_ns === null ? "\u2013" : millis(step.took_ns), step.queued_ns ? millis(step.queued_ns) : "\u2013", bar];
  });
  return h("details", {}, h("summary", {}, `Request ${own.request}: ${own.kind}${where}, ${own.took_ns === null ? "running" : millis(own.took_ns)}${own.status && own.status !== "ok" ? `, ${own.status}` : ""}`),
    own.whole ? null : h("p", {}, "Its beginning is not recorded any more."),
    table(`Request ${own.request}`, ["At", "What happened", "Took", "Waited for its drive", "From begin to end"], rows));
}
