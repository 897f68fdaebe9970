import { h, field, say, select, table, tag, time } from "./ui.js";
import { call, get, state } from "./api.js";

export function page(main) {
  const level = select([["info", "all levels"], ["warning", "warnings and worse"], ["critical", "critical"]], "info");
  const array = select([["", "all arrays"], ...state.arrays.map((own) => own.name)], "");
  const open = h("input", { type: "checkbox", id: "only-open" });
  const list = h("div", {});
  let before = null;
  const load = async (more) => {
    const query = new URLSearchParams({ limit: "100", level: level.value });
    if (array.value) query.set("array", array.value);
    if (open.checked) query.set("unacknowledged", "true");
    if (more && before) query.set("before", String(before));
    const found = await get(`/events?${query}`);
    before = found.events[0]?.number;
    const events = found.events.reverse();
    const rows = events.map((event) => [String(event.number), time(event.at_seconds), tag(event.level, event.level), event.event, event.text,
      h("td", { className: "act" }, event.acknowledged ? "acknowledged" : h("button", { id: `ack-${event.number}`, "aria-label": `Acknowledge event ${event.number}`, onclick: async () => { await call("POST", "/events/acknowledge", { from: event.number }); say(`Event ${event.number} is acknowledged.`); load(); } }, "Acknowledge"))]);
    list.replaceChildren(rows.length ? table("Events", ["Number", "Time", "Level", "Event", "What happened", "Acknowledged"], rows) : h("p", {}, "No events."),
      h("p", {}, found.more ? h("button", { onclick: () => load(true) }, "Older") : null, events.some((event) => !event.acknowledged) ? h("button", { onclick: async () => { await call("POST", "/events/acknowledge", { from: events.at(-1).number, to: events[0].number }); load(); } }, "Acknowledge all of these") : null));
  };
  [level, array, open].forEach((input) => input.addEventListener("change", () => load()));
  main.append(h("h1", {}, "Events and alarms"), h("div", { className: "card row" }, field("Level", level), field("Array", array), h("label", { className: "check", htmlFor: "only-open" }, open, "Only those not acknowledged")), h("section", { className: "card" }, list));
  load().catch((problem) => say(problem.message));
  const update = () => {};
  update.log = () => { if (!list.contains(document.activeElement) || document.activeElement === document.body) load().catch(() => {}); };
  return update;
}
