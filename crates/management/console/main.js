// The shell: signing in, the way to a page, one sentence of health on every page.

import { closeDialogs, h, keyed, field, part, say, fill } from "./ui.js";
import { call, close, get, listen, may, open, readAlarms, state } from "./api.js";
import { count } from "./words.js";
import { sample } from "./chart.js";
import { page as overview } from "./overview.js";
import { page as array } from "./array.js";
import { page as drives } from "./drives.js";
import { page as journal } from "./journal.js";
import { page as create } from "./create.js";
import { page as lab } from "./lab.js";
import { page as events } from "./events.js";
import { page as settings } from "./settings.js";

/** A page shows itself, and gives what is called every second.
 * @typedef {(() => void) & { log?: (event: any) => void }} Update
 * @type {[string, string, (main: HTMLElement, name?: string) => Update][]} */
const PAGES = [["", "Overview", overview], ["drives", "Drives", drives], ["journal", "Battery", journal], ["create", "Create", create], ["lab", "Lab", lab], ["events", "Events", events], ["settings", "Settings", settings]];
const main = part("main");
const top = part("top");
const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;
/** @type {Update} */
let update = () => {};
/** How often alarms are read besides: an alarm can end without an event. */
const ALARM_TICKS = 5;
let ticks = 0;
const health = h("div", {});

function shell(current) {
  const leave = async () => { await call("DELETE", "/session"); state.session = null; close(); signIn(); };
  fill(top, h("div", { className: "bar" }, h("span", { className: "brand" }, "openraid"), h("span", { className: "machine" }, state.session.host),
    h("nav", { "aria-label": "Pages" }, h("ul", {}, PAGES.filter(([path]) => path !== "create" || may("Administrator")).map(([path, title]) => h("li", {}, h("a", { href: `#/${path}`, "aria-current": path === current ? "page" : null }, title))))),
    h("div", { className: "right" }, h("span", {}, state.session.user === state.session.role ? state.session.role : `${state.session.user} (${state.session.role})`), h("button", { onclick: leave }, "Sign out"))), health);
  showHealth();
}

function showHealth() {
  const order = { offline: 0, failed: 1, degraded: 2, optimal: 3 };
  const worst = [...state.arrays].sort((a, b) => order[a.health] - order[b.health] || a.survives - b.survives)[0];
  const bad = state.arrays.filter((own) => own.health !== "optimal").length;
  const alarms = state.alarms.length;
  const alarmsText = alarms ? ` ${count(alarms, "alarm is", "alarms are")} open.` : "";
  const well = worst && (state.arrays.length === 1 ? worst.sentence : `${state.arrays.length} arrays, each is ${worst.health}.`);
  const grave = state.alarms.some((alarm) => alarm.level === "critical");
  const kind = grave ? "failed" : !state.fresh ? "degraded" : worst && worst.health !== "optimal" ? worst.health : alarms ? "degraded" : "optimal";
  const text = !state.fresh ? "The server does not answer; this page may be out of date." : !worst ? `No array is served.${alarmsText}` : worst.health === "optimal" ? well + alarmsText : `${worst.sentence}${bad > 1 ? ` ${count(bad - 1, "more array needs", "more arrays need")} attention.` : ""}`;
  const link = !state.fresh ? null : worst && worst.health !== "optimal" ? h("a", { href: `#/array/${encodeURIComponent(worst.name)}` }, "Look at it") : alarms ? h("a", { href: "#/events" }, "See the alarms") : null;
  keyed(health, [text, kind], () => h("p", { className: `health ${kind}`, role: "status" }, text, link));
}

function route() {
  if (!state.session) return;
  const [path, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const known = PAGES.find(([own]) => own === path);
  const [name = "", ...action] = rest.map(decodeURIComponent);
  shell(path);
  closeDialogs();
  fill(main);
  document.title = `${known ? known[1] : name} \u2013 ${state.session.host} \u2013 openraid`;
  update = path === "array" ? array(main, name, action) : (known || PAGES[0])[2](main, name);
  update();
}

function signIn(message) {
  update = () => {};
  fill(top, h("div", { className: "bar" }, h("span", { className: "brand" }, "openraid")));
  const name = h("input", { autocomplete: "username", required: true });
  const password = h("input", { type: "password", autocomplete: "current-password", required: true });
  const error = h("p", { className: "error", role: "alert" }, message || "");
  fill(main, h("form", { className: "card", onsubmit: async (event) => {
    event.preventDefault();
    try { await call("POST", "/session", { name: name.value, password: password.value }); begin(); } catch (problem) { error.textContent = problem.message; }
  } }, h("h1", {}, "Sign in"), field("Name", name), field("Password", password), error, h("p", {}, h("button", { className: "main" }, "Sign in")),
  h("p", { className: "hint" }, "No password yet, or forgotten? On the server, ", h("code", {}, "openraid login"), " prints a link that signs in once.")));
}

async function begin() {
  const once = /^#login=([0-9a-f]+)$/.exec(location.hash);
  let message = "";
  if (once) {
    history.replaceState(null, "", "/");
    try { await call("POST", "/session", { one_time: once[1] }); } catch (problem) { message = problem.message; }
  }
  try { state.session = await get("/session"); } catch (problem) { signIn(message || (problem.status === 401 ? "" : problem.message)); return; }
  readAlarms().catch(() => {});
  state.arrays = (await get("/arrays")).arrays;
  state.fresh = true;
  open();
  if (state.session.first) say("No user has a password yet: add an administrator under Settings.");
  route();
}

listen((kind, value) => {
  if (kind === "session") { close(); signIn("The session has ended."); return; }
  if (kind === "log") { readAlarms().catch(() => {}); update.log?.(value); return; }
  if (!state.session) return;
  if (kind === "status" && state.fresh) sample(state.arrays.filter((own) => own.health !== "offline"));
  showHealth();
  if (kind === "alarms") return;
  if ((ticks += 1) % ALARM_TICKS === 0) readAlarms().catch(() => {});
  update();
});
addEventListener("hashchange", () => { if (/^#login=/.test(location.hash)) { begin(); return; } route(); main.focus(); });
begin();
