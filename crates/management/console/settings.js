import { h, ask, facts, field, operate, rate, say, select, table, time, fill } from "./ui.js";
import { call, get, may, state } from "./api.js";
import { count, FROM, keyWords } from "./words.js";
import { addSink, dropSink, serverParts, spareParts } from "./kept.js";

export function page(main) {
  const users = h("section", { className: "card" });
  const config = h("section", { className: "card" });
  const theme = select([["", "as the system"], "light", "dark"], localStorage.getItem("theme") || "");
  theme.addEventListener("change", () => { localStorage.setItem("theme", theme.value); document.documentElement.dataset.theme = theme.value; });
  const care = h("section", { className: "card" });
  const whole = h("section", { className: "card" });
  const support = !may("Administrator") ? null : h("section", { className: "card" }, h("h2", {}, "Support archive"), h("p", {}, "The whole state of this server in one document, for support: arrays, drives with their serial numbers, settings, alarms, decisions, histories and the last 1000 events. Passwords and addresses of sinks are not in it."),
    h("p", {}, h("a", { href: "/api/v1/support", download: "openraid-support.json" }, "Download the support archive")));
  const tokens = h("section", { className: "card", hidden: !may("Administrator") });
  main.append(h("h1", {}, "Settings"), h("section", { className: "card" }, h("h2", {}, "Appearance"), field("Theme", theme)), care, whole, users, tokens, config, support || "");
  const operates = may("Operator");
  const load = async () => {
    const own = await get("/settings");
    const [{ sinks }, { schedules }] = await Promise.all([get("/sinks"), get("/schedules")]);
    const kept = may("Administrator") ? await get("/kept") : null;
    fill(whole, h("h2", {}, "Server"), ...(kept ? serverParts(own, kept, load) : []), ...spareParts(own, kept, load).filter(Boolean));
    fill(care, h("h2", {}, "Alarms and schedules"), h("h3", {}, "Sinks"), sinks.length ? table("Sinks", ["Sink", "Kind", "To", "From level", "State", "Actions"], sinks.map((sink) => [sink.name, sink.kind, sink.target, sink.level, sink.error || "works",
      h("td", { className: "act" }, operate({ id: `test-${sink.name}`, "aria-label": `Test ${sink.name}`, onclick: () => test(sink.name) }, "Test"), kept && !sink.line ? h("button", { "aria-label": `Remove sink ${sink.name}`, onclick: () => dropSink(kept, sink.name, load) }, "Remove") : null)])) : h("p", {}, "No alarms are sent."), kept ? h("button", { id: "add-sink", onclick: () => addSink(kept, load) }, "Add a sink") : "",
      h("h3", {}, "Schedules"), schedules.length ? table("Schedules", ["Schedule", "Task", "Arrays", "Every", "Window (UTC)", "Rate", "From", "Actions"], schedules.map((plan) => [plan.name, plan.task, plan.arrays.join(", ") || "all", every(plan.every_seconds), plan.window || "any time", plan.rate ? rate(plan.rate) : "as the array has it", plan.line ? `line ${plan.line}` : "kept by the server",
      h("td", { className: "act" }, plan.line || !operates ? null : h("button", { "aria-label": `Remove schedule ${plan.name}`, onclick: () => drop(plan.name, load) }, "Remove"))])) : h("p", {}, "Nothing is scheduled."),
      operates ? h("button", { id: "add-schedule", onclick: () => addSchedule(load) }, "Add a schedule") : "");
    const values = (list) => list.map((value) => [keyWords(value.key), value.value, value.line ? `line ${value.line}` : FROM[value.from] || value.from]);
    fill(config, h("h2", {}, "Desired state"), h("div", {}, facts([["Configuration file", own.path || "none"]]),
      own.server.length ? table("Server", ["Key", "Value", "From"], values(own.server)) : h("p", {}, "Every setting has its default."),
      own.arrays.map((array) => [h("h3", {}, array.name), array.values.length ? table(array.name, ["Key", "Value", "From"], values(array.values)) : h("p", {}, "All settings have their defaults. They are changed on the page of the array.")])));
    if (!may("Administrator")) { fill(users, h("h2", {}, "Users"), h("p", {}, "Only administrators see users.")); return; }
    const all = (await get("/users")).users;
    const change = async (name, body) => { try { await call("PATCH", `/users/${encodeURIComponent(name)}`, body); load(); } catch (problem) { say(problem.message); } };
    fill(users, h("h2", {}, "Users"), all.length ? table("Users", ["Name", "Role", "State", "Actions"], all.map((user) => [user.name, user.role, user.locked ? "locked" : "may sign in", h("td", { className: "act" },
      h("button", { onclick: () => newPassword(user.name, change) }, "New password"), h("button", { onclick: () => change(user.name, { locked: !user.locked }) }, user.locked ? "Unlock" : "Lock"),
      h("button", { className: "risk", onclick: () => ask({ title: `Remove ${user.name}`, risk: true, name: user.name, button: "Remove", act: async () => { await call("DELETE", `/users/${encodeURIComponent(user.name)}`); load(); } }) }, "Remove"))]))
      : h("p", {}, "No user has a password yet. Add an administrator: the link that you came by works only once."), h("button", { className: "main", id: "add-user", onclick: () => addUser(load, all.length === 0) }, "Add a user"));
    const lasting = (await get("/tokens")).tokens;
    fill(tokens, h("h2", {}, "Tokens"), lasting.length ? table("Tokens", ["Name", "Role", "Since", "Actions"], lasting.map((token) => [token.name, token.role, time(token.since_seconds), h("td", { className: "act" },
      h("button", { className: "risk", "aria-label": `Revoke ${token.name}`, onclick: () => ask({ title: `Revoke ${token.name}`, risk: true, text: "Programs that use it are refused at once.", button: "Revoke", act: async () => { await call("DELETE", `/tokens/${encodeURIComponent(token.name)}`); load(); } }) }, "Revoke"))]))
      : h("p", {}, "No program has a token: scripts and a Prometheus on another machine need one."), h("button", { id: "add-token", onclick: () => addToken(load) }, "Make a token"));
  };
  load().catch((problem) => say(problem.message));
  return () => {};
}

const every = (seconds) => (seconds % 86400 ? count(seconds / 3600, "hour") : count(seconds / 86400, "day"));

async function drop(name, load) {
  try { await call("DELETE", `/schedules/${encodeURIComponent(name)}`); say(`The schedule ${name} is removed.`); load(); } catch (problem) { say(problem.message); }
}

function addSchedule(load) {
  const name = h("input", { spellcheck: false, autocomplete: "off" });
  const task = select([["check", "check: members are read and compared"], ["patrol", "patrol: drives are read, nothing is compared"]], "check");
  const array = select([["", "all arrays"], ...state.arrays.map((own) => own.name)], "");
  const often = h("input", { value: "30d" });
  const window = h("input", { placeholder: "01:00-05:30" });
  const speed = h("input", { placeholder: "20M (only patrol)" });
  const ssd = select([["", "left out"], ["yes", "read too"]], "");
  ask({ title: "Add a schedule", button: "Add", fields: [field("Name", name, "The name of a kept schedule changes that one."), field("Task", task), field("Arrays", array), field("Every", often, "12h, 30d, 4w."), field("Window, UTC", window, "At any time if it is empty."), field("Rate of each drive", speed), field("SSDs of a patrol", ssd)],
    act: async () => { await call("POST", "/schedules", { name: name.value.trim(), task: task.value, arrays: array.value ? [array.value] : [], every: often.value.trim(), window: window.value.trim() || null, rate: speed.value.trim() || null, ssd: ssd.value ? true : null }); load(); } });
}

async function test(sink) {
  try { const [came] = (await call("POST", "/alarms/test", { sink })).value.sinks; say(came.error ? `${sink}: not delivered: ${came.error}` : `${sink}: the test alarm is delivered.`); } catch (problem) { say(problem.message); }
}

function addToken(load) {
  const name = h("input", { autocomplete: "off", spellcheck: false });
  const role = select(["ReadOnly", "Operator", "Administrator"], "ReadOnly");
  ask({ title: "Make a token", button: "Make", fields: [field("Name", name, "The program that will use it."), field("Role", role)],
    act: async () => { const made = (await call("POST", "/tokens", { name: name.value.trim(), role: role.value })).value; load(); ask({ title: `The token ${made.name}`, text: "It is shown once. Send it as Authorization: Bearer TOKEN.", fields: h("pre", {}, made.token), button: "It is copied", act: async () => {} }); } });
}

/** The first user is an administrator: without one, no other could be added. @param {() => any} load @param {boolean} first */
function addUser(load, first) {
  const name = h("input", { autocomplete: "username" });
  const role = select(["ReadOnly", "Operator", "Administrator"], first ? "Administrator" : "ReadOnly");
  const password = h("input", { type: "password", autocomplete: "new-password" });
  ask({ title: "Add a user", button: "Add", fields: [field("Name", name), field("Role", role, "ReadOnly sees everything; Operator changes settings and members; Administrator makes and stops arrays and changes users."), field("Password", password, "10 characters or more.")],
    act: async () => { await call("POST", "/users", { name: name.value.trim(), role: role.value, password: password.value }); load(); } });
}

function newPassword(name, change) {
  const password = h("input", { type: "password", autocomplete: "new-password" });
  ask({ title: `New password of ${name}`, button: "Change", fields: field("Password", password, "10 characters or more. Sessions of this user end."), act: () => change(name, { password: password.value }) });
}
