import { h, keyed, bytes, facts, rate, tag, fill } from "./ui.js";
import { may, state, get } from "./api.js";
import { loadChart, noteLatency, samples } from "./chart.js";
import { nextStep } from "./steps.js";
import { arrayLink, CACHES, count, level, members, millis, tasks, percent } from "./words.js";

export function page(main) {
  const list = h("div", { className: "grid" });
  const server = h("section", { className: "card" });
  const open = h("section", { className: "card" });
  main.append(h("h1", {}, "Overview"), open, list, server);
  Promise.all([get("/server"), get("/journal")]).then(([own, journal]) => {
    const cache = state.arrays.map((array) => array.cache?.size_bytes || 0).reduce((a, b) => Math.max(a, b), 0);
    const drives = state.arrays.flatMap(members).filter((member) => member.member).length;
    fill(server, h("h2", {}, "Controller"), facts([
      ["Model", "openraid, a controller in user space"], ["Firmware", `version ${own.version}, process ${own.pid}`], ["Cache", cache ? bytes(cache) : "none"], ["Battery", journal ? h("a", { href: "#/journal" }, journal.state === "live" ? "journal, ready" : `journal, ${journal.state}`) : "no journal"],
      ["Ports in use", count(drives, "drive")], ["Engine", own.engine], ["Parity", own.kernels],
      ["Clients", String(own.clients)], ["Listens at", own.listens.join(" ")], own.notes.length ? ["Notes", own.notes.join("; ")] : null]));
  }, () => {});
  const openAlarms = () => {
    const alarms = state.alarms.slice(0, 5);
    return [h("h2", {}, "Open alarms"), alarms.length
      ? h("ul", {}, alarms.map((alarm) => h("li", {}, tag(alarm.level, alarm.level), ` ${alarm.text} `, nextStep(alarm.next_step)[0])))
      : h("p", {}, "None. Every warning is over or acknowledged."), h("a", { href: "#/events" }, "All alarms and events")];
  };
  /** @type {Map<string, Live>} */
  const lives = new Map();
  return () => { state.arrays.forEach((array) => { const own = lives.get(array.name) || new Live(array.name); lives.set(array.name, own); own.draw(); }); keyed(open, state.alarms.map((alarm) => [alarm.id, alarm.text]), openAlarms); keyed(list, state.arrays.map((array) => [array.name, array.sentence, tasks(array).map((task) => task.text), array.profile, array.settings.write_cache, array.check_text]), () =>
    state.arrays.length ? state.arrays.map((array) => card(array, lives)) : h("section", { className: "card" }, h("h2", {}, "No array is served"),
      may("Administrator") ? [h("p", {}, "Make one of the drives of this machine."), h("a", { className: "button", href: "#/create" }, "Create an array")] : h("p", {}, "An administrator can make one of the drives of this machine."))); };
}

/** The load of an array now: a line of requests, with rate and latency in words. */
class Live {
  constructor(name) {
    this.name = name;
    this.asks = 0;
    this.chart = loadChart();
    this.element = this.chart.element;
  }
  draw() {
    const all = samples(this.name);
    if (!all.length) return;
    const last = all[all.length - 1];
    this.chart.draw(all, `, ${rate(last.read_bytes + last.written_bytes)}${last.latency ? `, ${millis(last.latency)} each` : ""}`);
    if ((this.asks += 1) % 3 === 1) get(`/arrays/${encodeURIComponent(this.name)}/limit`).then((own) => noteLatency(this.name, own.mean_ns), () => {});
  }
}

/** The last check, as the server tells it. */
const lastCheck = (array) => [array, ...array.spans].flatMap((set) => set.check_text.map((line) => (set === array ? line : `${set.name}: ${line}`))).join("; ") || "none is known";

/** Members in slots, and the drives beside them. */
function counted(array) {
  const all = members(array);
  const spares = all.filter((member) => member.state === "spare").length;
  const out = all.filter((member) => ["faulty", "replaced"].includes(member.state)).length;
  return [all.filter((member) => member.slot !== null).length, spares && count(spares, "spare"), out && `${out} to be removed`].filter(Boolean).join(", ");
}

function card(array, lives) {
  if (array.health === "offline") {
    return h("section", { className: "card" }, h("h2", {}, arrayLink(array.name), " ", tag(array.health, array.health)), h("p", {}, array.sentence), facts([["Level", level(array)]]), h("p", {}, nextStep(array.next_step?.command)));
  }
  return h("section", { className: "card" }, h("h2", {}, arrayLink(array.name), " ", tag(array.health, array.health)),
    h("p", {}, array.sentence),
    tasks(array).map((task) => [h("p", {}, task.text), h("progress", { max: 100, value: percent(task), "aria-label": task.text })]),
    lives.get(array.name).element,
    facts([["Level", level(array)], ["Size", bytes(array.size_bytes)], ["Members", counted(array)],
      ["Writes", CACHES[array.settings.write_cache] || array.settings.write_cache || "\u2013"], ["Profile", array.profile ? array.profile.name : "\u2013"], ["Last check", lastCheck(array)], ["Clients find it at", array.addresses.join(" ") || "nowhere"]]));
}
