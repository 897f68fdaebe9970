import { h, keyed, bytes, table, tag } from "./ui.js";
import { state } from "./api.js";
import { arrayLink, count, errors, members, stateKind } from "./words.js";

/** What a drive says of its own health. */
function health(smart) {
  if (!smart) return "not known";
  const parts = [smart.passed === null ? "no verdict" : smart.passed ? "passed" : "failing", smart.temperature_celsius === null ? null : `${smart.temperature_celsius} \u00b0C`, smart.used_percent === null ? null : `${smart.used_percent} % worn`,
    smart.reallocated_sectors ? `${smart.reallocated_sectors} reallocated` : null, smart.pending_sectors ? `${smart.pending_sectors} pending` : null, smart.power_on_hours === null ? null : `${smart.power_on_hours} h on`];
  return tag(parts.filter(Boolean).join(", "), smart.passed === false ? "critical" : "");
}

export function page(main) {
  const list = h("section", { className: "card" });
  main.append(h("h1", {}, "Drives"), list);
  return () => {
    const all = state.arrays.flatMap((array) => members(array).filter((m) => m.member).map((member) => ({ array: array.name, ...member })));
    keyed(list, all.map((m) => [m.array, m.slot, m.member, m.state, m.media_errors, m.bad_ranges, m.notes, m.smart]), () => all.length ? table("Drives", ["Drive", "Model", "Firmware", "Serial", "Bay", "Link", "Health", "Size", "Array", "Slot", "State", "Its cache", "Commands", "Transferred", "Errors", "Notes"], all.map((m, nth) => [
      m.member, m.model || m.smart?.model, m.smart?.firmware, m.serial || m.smart?.serial, m.bay, m.smart?.link, health(m.smart), bytes(m.size_bytes), arrayLink(m.array), String(m.slot ?? "\u2013"), tag(m.state, stateKind(m.state)), m.drive_cache || "unknown",
      h("td", { id: `commands-${nth}` }), h("td", { id: `moved-${nth}` }), errors(m), m.notes.join("; ") || "none"])) : h("p", {}, "No array is served."));
    all.forEach((m, nth) => {
      const put = (id, text) => { const cell = document.getElementById(id); if (cell) cell.textContent = text; };
      put(`commands-${nth}`, `${count(m.reads, "read")}, ${count(m.writes, "write")}, ${m.outstanding} now`);
      put(`moved-${nth}`, `${bytes(m.read_bytes)} read, ${bytes(m.written_bytes)} written`);
    });
  };
}
