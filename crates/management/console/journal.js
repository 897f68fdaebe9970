import { h, bytes, facts, table, tag, fill } from "./ui.js";
import { get, state } from "./api.js";
import { CACHES, count } from "./words.js";

export function page(main) {
  const own = h("section", { className: "card" });
  const use = h("section", { className: "card" });
  main.append(h("h1", {}, "Battery (journal)"), own, use);
  let ticks = 0;
  return () => {
    if (ticks++ % 3) return;
    get("/journal").then((journal) => {
      fill(own, h("h2", {}, "Protection unit"), ...(journal ? present(journal) : [h("p", {}, "This server has no journal: it works as a controller without a battery. Writes are acknowledged when they are on the members, and a profile with a write cache would lose data in a power cut."), h("p", {}, "Make one with ", h("code", {}, "openraid journal create DEVICE"), " and start the server with ", h("code", {}, "--journal DEVICE"), ".")]));
      fill(use, h("h2", {}, "Its effect for the arrays"), table("Arrays", ["Array", "Write cache", "Protected", "Why not"], state.arrays.map((array) => [array.name, CACHES[array.settings.write_cache] || array.settings.write_cache || "\u2013", array.journal?.protected ? "yes" : "no", array.journal?.reason || (array.journal ? "\u2013" : "its policy uses no journal")])));
    }, () => {});
  };
}

function present(journal) {
  const counters = journal.counters;
  return [facts([["State", tag(journal.state === "live" ? "ready" : journal.state, journal.state === "live" ? "optimal" : "failed")], journal.trouble ? ["Trouble", journal.trouble] : null, ["Charge (ring in use)", `${bytes(journal.used_bytes)} of ${bytes(journal.ring_bytes)}, ${count(journal.entries, "entry", "entries")}`],
    counters ? ["Entries written", `${counters.entries}, with ${bytes(counters.data_bytes)} of clients`] : null, counters ? ["Replayed at starts", `${bytes(counters.replayed_bytes)}, ${count(counters.replayed_redos, "redo record")}`] : null, ["Last test", "every write is one: what the journal acknowledges is on its devices; a start reads all of it"], ["UUID", journal.uuid]]),
  h("progress", { max: journal.ring_bytes || 1, value: journal.used_bytes, "aria-label": "Ring in use" }),
  table("Devices", ["Device", "State"], journal.devices.map((device) => [device.device, tag(device.works ? "works" : "failed", device.works ? "optimal" : "failed")])),
  journal.arrays.length ? table("Arrays", ["Array", "State", "Waiting entries"], journal.arrays.map((array) => [array.name || array.uuid, array.state, String(array.waiting_entries)])) : null].filter(Boolean);
}
