import { h, keyed, bytes, facts, tag } from "./ui.js";
import { state, get } from "./api.js";
import { arrayLink, CACHES, count, level, members, tasks, percent } from "./words.js";

export function page(main) {
  const list = h("div", { className: "grid" });
  const server = h("section", { className: "card" });
  const open = h("section", { className: "card" });
  main.append(h("h1", {}, "Overview"), list, h("div", { className: "grid" }, server, open));
  Promise.all([get("/server"), get("/journal")]).then(([own, journal]) => {
    const cache = state.arrays.map((array) => array.cache?.size_bytes || 0).reduce((a, b) => Math.max(a, b), 0);
    const drives = state.arrays.flatMap(members).filter((member) => member.member).length;
    server.replaceChildren(h("h2", {}, "Controller"), facts([
      ["Model", "openraid, a controller in user space"], ["Firmware", `version ${own.version}, process ${own.pid}`], ["Cache", cache ? bytes(cache) : "none"], ["Battery", journal ? h("a", { href: "#/journal" }, journal.state === "live" ? "journal, ready" : `journal, ${journal.state}`) : "no journal"],
      ["Ports in use", count(drives, "drive")], ["Engine", own.engine], ["Parity", own.kernels],
      ["Clients", String(own.clients)], ["Listens at", own.listens.join(" ")], own.notes.length ? ["Notes", own.notes.join("; ")] : null]));
  }, () => {});
  const openAlarms = () => {
    const alarms = state.alarms.slice(0, 5);
    return [h("h2", {}, "Open alarms"), alarms.length
      ? h("ul", {}, alarms.map((alarm) => h("li", {}, tag(alarm.level, alarm.level), ` ${alarm.text}`)))
      : h("p", {}, "None. Every warning is over or acknowledged."), h("a", { href: "#/events" }, "All alarms and events")];
  };
  return () => { keyed(open, state.alarms.map((alarm) => [alarm.id, alarm.text]), openAlarms); keyed(list, state.arrays.map((array) => [array.name, array.sentence, tasks(array).map((task) => task.text), array.profile, array.settings.write_cache]), () =>
    state.arrays.length ? state.arrays.map(card) : h("section", { className: "card" }, h("h2", {}, "No array is served"),
      h("p", {}, "Make one, or start one with ", h("code", {}, "openraid serve NAME"), "."), h("a", { href: "#/create" }, "Create an array"))); };
}

/** Members in slots, and the drives beside them. */
function counted(array) {
  const all = members(array);
  const spares = all.filter((member) => member.state === "spare").length;
  const out = all.filter((member) => ["faulty", "replaced"].includes(member.state)).length;
  return [all.filter((member) => member.slot !== null).length, spares && count(spares, "spare"), out && `${out} to be removed`].filter(Boolean).join(", ");
}

function card(array) {
  return h("section", { className: "card" }, h("h2", {}, arrayLink(array.name), " ", tag(array.health, array.health)),
    h("p", {}, array.sentence),
    tasks(array).map((task) => [h("p", {}, task.text), h("progress", { max: 100, value: percent(task), "aria-label": task.text })]),
    facts([["Level", level(array)], ["Size", bytes(array.size_bytes)], ["Members", counted(array)],
      ["Writes", CACHES[array.settings.write_cache] || array.settings.write_cache], ["Profile", array.profile ? array.profile.name : "\u2013"], ["Clients find it at", array.addresses.join(" ") || "nowhere"]]));
}
