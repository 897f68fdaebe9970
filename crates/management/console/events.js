import { h, field, keyed, operate, say, select, table, tag, time, fill } from "./ui.js";
import { call, get, readAlarms, state } from "./api.js";
import { nextStep } from "./steps.js";

const acknowledge = async (which, load) => {
  try { const done = (await call("POST", "/alarms/acknowledge", { which })).value.acknowledged; readAlarms(); say(done.length === 1 ? "The alarm is acknowledged." : `${done.length} alarms are acknowledged.`); load(); } catch (problem) { say(problem.message); }
};

/** Acknowledge the events of these numbers. @param {{ from: number, to?: number }} which @param {() => any} load */
const acknowledgeEvents = async (which, load) => {
  try { await call("POST", "/events/acknowledge", which); say(which.to ? "These events are acknowledged." : `Event ${which.from} is acknowledged.`); load(); } catch (problem) { say(problem.message); }
};

/** A search begins when nothing was typed for this long. */
const SEARCH_AFTER_MS = 300;

/** Alarms are states: each stands here as long as it lasts. */
export function alarmList(alarms, load) {
  if (!alarms.length) return h("p", {}, "None: nothing is wrong.");
  const rows = alarms.map((alarm) => [tag(alarm.level, alarm.level), h("td", { className: "wide" }, h("span", {}, alarm.text), alarm.next_step ? h("p", {}, nextStep(alarm.next_step)) : null), time(alarm.since_seconds), alarm.until_seconds ? time(alarm.until_seconds) : "holds",
    h("td", { className: "act" }, alarm.acknowledged_seconds ? "acknowledged" : alarm.until_seconds ? "over" : operate({ id: `alarm-${alarm.id}`, "aria-label": `Acknowledge ${alarm.id}`, onclick: () => acknowledge(alarm.id, load) }, "Acknowledge"))]);
  return [table("Alarms", ["Level", "State and next step", "Since", "Until", "Acknowledged"], rows),
    alarms.filter((alarm) => !alarm.acknowledged_seconds && !alarm.until_seconds).length > 1 ? h("p", {}, operate({ id: "alarm-all", onclick: () => acknowledge("all", load) }, "Acknowledge all")) : null];
}

function alarmCard() {
  const list = h("div", {});
  const ended = h("input", { type: "checkbox", id: "ended" });
  const load = async () => { const found = (await get(`/alarms?ended=${ended.checked}`)).alarms; keyed(list, found, () => alarmList(found, load)); };
  ended.addEventListener("change", () => load().catch((problem) => say(problem.message)));
  return { load, element: h("section", { className: "card" }, h("h2", {}, "Alarms"), h("label", { className: "check", htmlFor: "ended" }, ended, "Also those that are over"), list) };
}

export function page(main) {
  const alarms = alarmCard();
  const level = select([["info", "all levels"], ["warning", "warnings and worse"], ["critical", "critical"]], "info");
  const array = select([["", "all arrays"], ...state.arrays.map((own) => own.name)], "");
  const open = h("input", { type: "checkbox", id: "only-open" });
  const words = h("input", { type: "search", spellcheck: false, placeholder: "a word of the event, an array, a drive" });
  const list = h("div", {});
  let before = null;
  let turn = 0;
  const load = async (more) => {
    const query = new URLSearchParams({ limit: "100", level: level.value });
    if (array.value) query.set("array", array.value);
    if (open.checked) query.set("unacknowledged", "true");
    if (words.value.trim()) query.set("text", words.value.trim());
    if (more && before) query.set("before", String(before));
    const own = (turn += 1);
    const found = await get(`/events?${query}`);
    if (own !== turn) return;
    before = found.events[0]?.number;
    const events = found.events.reverse();
    const rows = events.map((event) => [String(event.number), time(event.at_seconds), tag(event.level, event.level), event.event, event.text,
      h("td", { className: "act" }, event.acknowledged ? "acknowledged" : event.level === "info" ? null : operate({ id: `ack-${event.number}`, "aria-label": `Acknowledge event ${event.number}`, onclick: () => acknowledgeEvents({ from: event.number }, load) }, "Acknowledge"))]);
    fill(list, rows.length ? table("Events", ["Number", "Time", "Level", "Event", "What happened", "Acknowledged"], rows) : h("p", {}, words.value.trim() ? "No event has these words." : "No events."),
      h("p", {}, found.more ? h("button", { onclick: () => load(true) }, "Older") : null, events.some((event) => !event.acknowledged) ? operate({ onclick: () => acknowledgeEvents({ from: events.at(-1).number, to: events[0].number }, load) }, "Acknowledge all of these") : null));
  };
  [level, array, open].forEach((input) => input.addEventListener("change", () => load()));
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let typing;
  words.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => load().catch((problem) => say(problem.message)), SEARCH_AFTER_MS); });
  const whole = h("a", { href: "/api/v1/events?limit=1000", download: "openraid-events.json" }, "Download the last 1000 events as JSON");
  const lines = h("a", { href: "/api/v1/events.csv?limit=1000", download: "openraid-events.csv" }, "as CSV");
  main.append(h("h1", {}, "Events and alarms"), alarms.element, h("h2", {}, "Event log"), h("p", {}, whole, ", or ", lines), h("div", { className: "card row" }, field("Search", words), field("Level", level), field("Array", array), h("label", { className: "check", htmlFor: "only-open" }, open, "Only those not acknowledged")), h("section", { className: "card" }, list));
  load().catch((problem) => say(problem.message));
  const refresh = () => alarms.load().catch(() => {});
  let looked = 0;
  const update = () => { if (Date.now() - looked > 3000) { looked = Date.now(); refresh(); } };
  update.log = () => { refresh(); if (!list.contains(document.activeElement) || document.activeElement === document.body) load().catch(() => {}); };
  return update;
}
