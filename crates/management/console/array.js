import { h, administer, ask, bytes, copying, facts, field, keyed, operate, rate, say, select, table, tag, toCreate, written } from "./ui.js";
import { array as find, change, get, may } from "./api.js";
import { className, command, errors, level, members, named, percent, sentenceCase, stateKind, tasks, CRASH, WRITES } from "./words.js";
import { driveChoice } from "./drives.js";
import { charts, noteLatency, samples } from "./chart.js";
import { historyPanel } from "./history.js";
import { explainPanel, storyPanel } from "./explain.js";
import { stripeMap } from "./map.js";
import { leadsTo, nextStep } from "./steps.js";
import { asDisk } from "./disk.js";
import { setExports } from "./kept.js";

/** @param {HTMLElement} main @param {string} name @param {string[]} action what the address asks for: a verb, and a member */
export function page(main, name, action = []) {
  const head = h("div", {});
  const parts = { members: h("section", { className: "card" }), task: h("section", { className: "card" }), shape: h("section", { className: "card" }), policy: h("section", { className: "card wide" }), cache: h("section", { className: "card" }) };
  const drawn = charts();
  const live = h("section", { className: "card" }, h("h2", {}, "Load"), drawn.map((chart) => chart.element));
  const explain = explainPanel(name);
  const stories = storyPanel(name);
  const map = h("div", {});
  const disk = h("section", { className: "card" });
  const history = h("section", { className: "card" }, h("h2", {}, "History"), historyPanel(name));
  const served = h("div", {}, disk, parts.members, parts.shape, h("div", { className: "grid" }, live, parts.task, parts.cache), parts.policy, explain.element, stories.element, map, history);
  main.append(h("h1", {}, name), head, served);
  let asked = 0;
  const isNew = action[0] === "disk";
  return () => {
    const array = find(name);
    served.hidden = !array || array.health === "offline";
    if (!array) { keyed(head, null, () => h("p", {}, `${name} is not served.`)); return; }
    keyed(head, [array.sentence, array.next_step], () => [h("p", { className: `health ${array.health}` }, array.sentence, served.hidden ? null : ownStep(array)), served.hidden ? offline(array) : null]);
    if (served.hidden) return;
    keyed(parts.members, members(array).map((m) => [m.slot, m.member, m.text, m.device, m.media_errors, m.bad_ranges]), () => memberTable(array));
    keyed(parts.task, [tasks(array).map((task) => task.text), [array, ...array.spans].map((set) => set.check_text)], () => taskCard(array));
    parts.shape.hidden = !array.shape && !array.other_sizes.length;
    keyed(parts.shape, [array.shape, array.other_sizes, array.task?.paused], () => shapeCard(array));
    keyed(parts.policy, [array.settings, array.profile, array.access, array.consistency_policy], () => policy(array));
    keyed(parts.cache, [array.cache, array.journal], () => cache(array));
    keyed(disk, [array.addresses, array.chunk_bytes, array.access], () => asDisk(array, isNew));
    keyed(map, [array.size_bytes, array.chunk_bytes], () => stripeMap(name));
    drawn.forEach((chart) => chart.draw(samples(name)));
    if (action.length) { doAction(array, action); action = []; }
    if ((asked += 1) % 2 === 1) { explain.read().then((own) => noteLatency(name, own.limit.mean_ns), () => {}); stories.read(); }
  };
}

/** An array that is wanted and could not be started: nothing of it can be changed here. */
function offline(array) {
  const next = array.next_step;
  return h("section", { className: "card" }, h("h2", {}, "How to get it back"),
    h("p", {}, "The server starts it by itself as soon as its members are there. On the machine, this line says what is known of each member, and what to do; it writes nothing:"), h("pre", {}, next.command), copying({ id: "next-step", className: "main" }, next.command, `${next.text}: copy the line`),
    facts([["Level", level(array)], ["UUID", array.uuid || "\u2013"]]), h("p", {}, h("a", { className: "button", href: "#/events" }, "See its alarms"), h("a", { className: "button", href: "#/drives" }, "See the drives")));
}

/** Do what the address asks for, as the button of an alarm does. @param {any} array @param {string[]} action */
function doAction(array, action) {
  const [verb, word = ""] = action;
  history.replaceState(null, "", `#/array/${encodeURIComponent(array.name)}`);
  const member = members(array).find((own) => word && [own.member, target(own), `slot:${own.slot}`].includes(word));
  const acts = { remove: removeMember, replace: replaceMember, fail: failMember };
  if (verb === "disk") return;
  if (!may("Operator")) { say("Only operators and administrators change arrays."); return; }
  if (verb === "add") addDrive(array, null, word);
  else if (verb === "set") setPolicy(array);
  else if (["check", "repair", "resume"].includes(verb)) document.getElementById(verb)?.focus();
  else if (acts[verb] && member) acts[verb](array, member);
  else say(`${word || verb}: the array has no such member by now.`);
}

const done = (value) => say(value.text.split("\n")[0]);

function ownStep(array) {
  const next = array.next_step;
  if (!next) return null;
  const to = leadsTo(next.command);
  const parts = to?.href.split("/").map(decodeURIComponent) || [];
  return to?.changes && parts[2] === array.name ? [operate({ id: "next-step", className: "main", onclick: () => doAction(array, parts.slice(3)) }, next.text), h("code", {}, next.command)] : nextStep(next.command);
}

const target = (member) => (member.drive === null ? `slot:${member.slot}` : `drive:${member.drive}`);

function memberTable(array) {
  const rows = members(array).map((member, nth) => {
    const button = (text, act, risk) => operate({ id: `m${nth}-${text}`, className: risk ? "risk" : "", onclick: act, "aria-label": `${text} ${member.member || `slot ${member.slot}`}` }, text);
    const gone = ["faulty", "replaced"].includes(member.state);
    const acts = [];
    if (["in-sync", "rebuilding"].includes(member.state)) acts.push(button("Fail", () => failMember(array, member), true));
    if (member.state === "in-sync") acts.push(button("Replace", () => replaceMember(array, member)));
    if (gone || member.state === "spare") acts.push(button("Remove", () => removeMember(array, member)));
    if (member.member && member.drive !== null) acts.push(button("Locate", () => locateMember(array, member)));
    if (member.state === "missing") acts.push(button("Add a drive", () => addDrive(array, member.span)));
    const place = member.slot ?? (member.left_slot === null ? "\u2013" : `was ${member.left_slot}`);
    return [member.span === null ? String(place) : `${member.span}${member.slot === null ? ", " : "."}${place}`, member.member || "no member", named(member), h("td", { className: "one" }, bytes(member.size_bytes)),
      tag(member.text, stateKind(member.state)), errors(member), h("td", { className: "act" }, acts)];
  });
  return [h("h2", {}, "Members"), table("Members", ["Slot", "Drive", "Model, serial, bay", "Size", "State", "Errors", "Actions"], rows),
    h("p", {}, operate({ id: "add-spare", onclick: () => addDrive(array) }, "Add a drive or spare"))];
}

function failMember(array, member) {
  const drive = member.member || target(member);
  ask({ title: `Fail ${drive}`, risk: true, name: array.name, button: "Fail this member", cli: command("fail", [array.name, drive]),
    text: array.survives > 0 ? `The array works without it and survives ${array.survives - 1} more after that.` : "The array has no redundancy left: it would lose data.",
    act: async (typed) => done(await change(array.name, "POST", "/fail", { member: target(member), device: member.device, confirm: typed })) });
}

function locateMember(array, member, off = false) {
  ask({ title: `Locate ${member.member}`, text: off ? "The light of its bay is on." : "The light of its bay is switched on, by the program that the table [care] of the configuration file names.", button: off ? "Light off" : "Light on",
    cli: command("locate", [array.name, member.member], off ? "--off" : ""),
    act: async () => {
      done(await change(array.name, "POST", "/locate", { member: target(member), off }));
      if (!off) setTimeout(() => locateMember(array, member, true));
    } });
}

function removeMember(array, member) {
  ask({ title: `Remove ${member.member}`, text: "It leaves the list; nothing is written to it.", button: "Remove", cli: command("remove", [array.name, member.member]),
    act: async () => done(await change(array.name, "POST", "/remove", { member: target(member), spare: member.state === "spare", device: member.device })) });
}

function addDrive(array, span = null, path = "") {
  const drive = driveChoice(undefined, path);
  ask({ title: `Add a drive to ${array.name}`, text: "It fills a missing slot at once; otherwise it waits as a spare. A drive that holds something is refused.", button: "Add", cli: command("add", [array.name, "DRIVE"]),
    fields: [field("Drive", drive.choice), drive.path], act: async () => done(await change(array.name, "POST", "/add", { member: drive.value(), span })) });
}

function replaceMember(array, member) {
  const drive = driveChoice("a spare of the array");
  ask({ title: `Replace ${member.member}`, text: "Its content is copied to the other drive, which then takes its slot. The array keeps its redundancy meanwhile.", button: "Replace",
    cli: command("replace", [array.name, member.member], "--with DRIVE"), fields: [field("New drive", drive.choice), drive.path],
    act: async () => done(await change(array.name, "POST", "/replace", { member: target(member), with: drive.value() || null, device: member.device })) });
}

function taskCard(array) {
  const run = (method, what, body) => async () => { try { done(await change(array.name, method, what, body)); } catch (problem) { say(problem.message); } };
  const own = tasks(array);
  const checks = [array, ...array.spans].flatMap((set) => set.check_text.map((line, nth) => (nth || set === array ? line : `${set.name}: ${line}`)));
  const checking = own.some((task) => ["check", "repair"].includes(task.kind));
  return [h("h2", {}, "Background work"),
    own.length ? own.map((task) => [h("p", {}, task.text), h("progress", { max: 100, value: percent(task), "aria-label": task.text })]) : h("p", {}, "Nothing runs."),
    checks.length ? [h("h3", {}, "Last check"), checks.map((line) => h("p", {}, line))] : h("p", {}, "No check is known."),
    checking ? operate({ id: "stop-check", onclick: run("DELETE", "/check") }, "Stop the check") : [operate({ id: "check", onclick: run("POST", "/check", {}) }, "Check"), operate({ id: "repair", onclick: run("POST", "/check", { kind: "repair" }) }, "Repair")],
    own.some((task) => task.paused) ? operate({ id: "resume", onclick: run("POST", "/resume") }, "Resume") : operate({ id: "pause", onclick: run("POST", "/pause") }, "Pause")];
}

/** Both shapes of an array with the boundary between them, and clients that do not know its size yet. */
function shapeCard(array) {
  const own = array.shape;
  const others = array.other_sizes.map((other) => h("p", {}, `${other.clients} connected ${other.clients === 1 ? "client has" : "clients have"} the former size, ${bytes(other.size_bytes)}: a client learns the new size when it connects again.`));
  if (!own) return [h("h2", {}, "Size"), others];
  const share = own.total_bytes ? Math.floor((own.moved_bytes * 100) / own.total_bytes) : 100;
  const [first, second] = own.direction === "forwards" ? [own.to, own.from] : [own.from, own.to];
  return [h("h2", {}, `Change of shape: ${share} %`), h("progress", { max: 100, value: own.direction === "forwards" ? share : 100 - share, "aria-label": own.text }),
    facts([[`Below ${bytes(own.position_bytes)}`, first.text], [`From ${bytes(own.position_bytes)} on`, second.text], ["Moved", `${bytes(own.moved_bytes)} of ${bytes(own.total_bytes)}, ${bytes(own.recorded_bytes)} of it recorded`], ["Size at the end", bytes(own.to.size_bytes)]]),
    array.task?.paused ? h("p", {}, "It stands still. Resume it under Background work.") : null,
    administer({ id: "cancel-reshape", onclick: () => cancelReshape(array) }, "Cancel"), others];
}

/** Move the data back. */
function cancelReshape(array) {
  ask({ title: `Cancel the change of shape of ${array.name}`, text: "What has moved moves back, while the array is used.", button: "Move back", cli: command("reshape", [array.name], "--cancel"),
    act: async () => done(await change(array.name, "DELETE", "/reshape")) });
}

/** Say what shall change, see the plan, begin. */
function reshape(array) {
  const drive = driveChoice("none");
  const input = (placeholder) => h("input", { placeholder, spellcheck: false, autocomplete: "off" });
  const raid = select([["", "as it is"], ...["0", "1", "4", "5", "6", "10"].map((own) => [own, `RAID ${own}`])], "");
  const [devices, chunk, layout, size] = [input(String(array.slots)), input(array.chunk_bytes ? written(array.chunk_bytes) : "none"), input(array.layout || "none"), input("as it is")];
  const wish = () => {
    const number = devices.value.trim();
    const words = { level: raid.value, chunk: chunk.value.trim(), layout: layout.value.trim(), size: size.value.trim() };
    return { ...Object.fromEntries(Object.entries(words).filter(([, value]) => value)), ...(number ? { raid_devices: Number(number) } : {}), ...(drive.value() ? { members: [drive.value()] } : {}) };
  };
  const cli = (asked) => command("reshape", [array.name], Object.entries(asked).map(([key, value]) => `--${key.replace("_", "-")} ${value}`).join(" "));
  ask({ title: `Change the shape of ${array.name}`, text: "Fill in what shall change; the array is used meanwhile. First comes the plan; nothing is changed by it.", button: "Show the plan", cli: command("reshape", [array.name], "--members DRIVE --plan"),
    fields: [field("New drive", drive.choice, "It joins as a spare first; without another number the array gets one member more."), drive.path, field("Number of members", devices), field("Level", raid), field("Chunk", chunk), field("Layout", layout),
      field("Used of each member", size, "max, after each smaller drive was replaced; or a size, after the size for clients was made smaller. Without the fields above.")],
    act: async () => {
      const asked = wish();
      const plan = await change(array.name, "POST", "/reshape/plan", asked);
      const line = cli(asked);
      ask({ title: `${plan.from.text} \u2192 ${plan.to.text}`, risk: true, name: array.name, button: "Begin", cli: line, fields: h("pre", {}, plan.text),
        act: async (typed) => done(await change(array.name, "POST", "/reshape", { ...asked, confirm: typed })) });
    } });
}

/** Let clients have the first part of an array only, or all of it again. */
function limitSize(array) {
  const size = h("input", { value: written(array.size_bytes), required: true, spellcheck: false, autocomplete: "off" });
  ask({ title: `Size of ${array.name} for clients`, risk: true, name: array.name, button: "Apply", cli: command("reshape", [array.name], "--array-size SIZE"),
    text: "Requests beyond the size are refused, and nothing there is lost: max gives all of it back, and so does the next start. Look whether all is there, then make the array smaller under Change the shape.",
    fields: field("Clients have", size), act: async (typed) => done(await change(array.name, "POST", "/reshape", { array_size: size.value.trim(), confirm: typed })) });
}

function policy(array) {
  const s = array.settings;
  const limit = (own) => (own ? `at most ${rate(own)}` : "no limit");
  return [h("h2", {}, "Policy"), facts([
    ["Profile", array.profile ? `${array.profile.name}${array.profile.set ? "" : " (default)"}` : "\u2013"],
    ["Level", `${level(array)}${array.layout ? `, ${array.layout}` : ""}`], ["Size", bytes(array.size_bytes)], ["Chunk", array.chunk_bytes ? bytes(array.chunk_bytes) : "none"],
    ["Access", array.access], ["Writes", WRITES[s.write_cache] || s.write_cache], ["Reads", `read cache ${s.read_cache ? "on" : "off"}, read-ahead ${s.read_ahead}`],
    ["After a crash", CRASH[array.consistency_policy] || array.consistency_policy || "no redundancy"], ["Rebuild", limit(s.rebuild_rate)], array.profile ? ["While degraded", `rebuild ${array.profile.degraded.rebuild_rate ? `at most ${rate(array.profile.degraded.rebuild_rate)}` : "without limit"}, ${array.profile.degraded.depth} operations at once`] : null, ["Check", limit(s.scrub_rate)],
    ["Differs from the profile", array.profile?.changes.map((own) => `${own.setting}=${own.to}`).join(", ") || "nothing"], ["UUID", array.uuid || "\u2013"]]),
  h("p", { className: "hint" }, "A change that the array refuses needs ", toCreate("a new array"), ", and a copy of the data."),
  array.level !== "jbod" && !array.spans.length && !array.shape ? [administer({ id: "reshape-array", onclick: () => reshape(array) }, "Change the shape"), administer({ id: "limit-array", onclick: () => limitSize(array) }, "Size for clients")] : null,
  operate({ id: "change-policy", onclick: () => setPolicy(array) }, "Change settings"),
  administer({ id: "set-exports", onclick: () => setExports(array) }, "Names for clients"),
  administer({ id: "rename-array", onclick: () => renameArray(array) }, "Rename"),
  administer({ id: "stop-array", className: "risk", onclick: () => stopArray(array) }, "Stop or delete this array")];
}

function renameArray(array) {
  const name = h("input", { value: array.name, required: true, spellcheck: false, autocomplete: "off" });
  ask({ title: `Rename ${array.name}`, text: "Clients that are connected stay; new ones use the new name. Settings, alarms and history stay.", button: "Rename", cli: command("rename", [array.name, "NEW"]), fields: field("New name", name),
    act: async () => { const value = await change(array.name, "POST", "/rename", { name: name.value.trim() }); done(value); if (value.array) location.hash = `#/array/${encodeURIComponent(value.array.name)}`; } });
}

function stopArray(array) {
  const forget = h("input", { type: "checkbox", id: "forget" });
  ask({ title: `Stop ${array.name}`, risk: true, name: array.name, text: "Its clients are disconnected. The members keep their data.", button: "Stop", cli: command("stop", [array.name]),
    fields: h("label", { className: "check", htmlFor: "forget" }, forget, "Delete it too: its name is forgotten, and its members can be used for another array (openraid forget)"),
    act: async (typed) => { done(await change(array.name, "DELETE", "", { confirm: typed, forget: forget.checked })); location.hash = "#/"; } });
}

/** The settings in groups: title, meaning, names. What is in none of them is shown last.
 * @type {[string, string, string[]][]} */
const GROUPS = [
  ["As a whole", "A profile sets the others at once; what is changed after it differs from the profile.", ["profile", "access"]],
  ["Writes", "When a write counts as done, and how it reaches the members.", ["write.cache", "write.partial", "drive.cache"]],
  ["Reads", "What is kept and read in advance.", ["read.cache", "read-ahead", "read-ahead-max"]],
  ["Mirrors", "Which copy is read; only for levels 1 and 10.", ["mirror-read", "split-above", "split-section", "split-streams"]],
  ["Rebuild and check", "How much of the drives background work may take from clients.", ["rebuild.rate", "scrub.rate", "background.depth"]],
  ["Drives", "The order of commands, tuning by load, and drives that return.", ["sorting", "adaptive", "members.readd"]],
];

/** Every setting that there is, with its meaning; only what was changed is sent. */
async function setPolicy(array) {
  let known, offers;
  try { ({ settings: known, offers } = await get("/settings/known")); } catch (problem) { say(problem.message); return; }
  const now = (own) => {
    if (own.name === "access") return array.access;
    const value = array.settings[own.name.replace(/[.-]/g, "_")];
    if (value === undefined) return "";
    return own.kind === "switch" ? (value ? "on" : "off") : ["size", "rate"].includes(own.kind) ? written(value) : String(value);
  };
  const inputs = known.map((own) => {
    const before = now(own);
    const words = own.words.includes(before) ? own.words : [[before, before || `unchanged (${array.profile?.name || "none"})`], ...own.words];
    return { own, before, input: own.words.length ? select(words, before) : h("input", { value: before, spellcheck: false, autocomplete: "off" }) };
  });
  const shown = ({ own, before, input }) => field(own.name, input, `${sentenceCase(own.help)}. Now ${before || "as the profile has it"}; ${own.words.length ? `in a new array ${own.default}` : `it takes ${own.values}, and is ${own.default} in a new array`}${own.needs ? `. Needs ${own.needs}` : ""}.`);
  const groups = GROUPS.map(([title, about, names]) => [title, about, inputs.filter(({ own }) => names.includes(own.name))]);
  groups.push(["Others", "", inputs.filter(({ own }) => !GROUPS.some(([, , names]) => names.includes(own.name)))]);
  const fields = groups.filter(([, , all]) => all.length).map(([title, about, all]) => h("fieldset", {}, h("legend", {}, title), h("p", { className: "hint" }, about), all.map(shown)));
  const risk = h("input", { type: "checkbox", id: "accept-risk" });
  // What suits the class of the drives, if all are of one, and is not set yet.
  const classes = new Set(members(array).filter((member) => member.slot !== null && member.member).map((member) => member.class));
  const [kind] = classes;
  const suiting = offers.filter((offer) => classes.size === 1 && offer.class === kind && (!offer.levels.length || offer.levels.includes(array.level)));
  const fill = () => suiting.forEach((offer) => inputs.filter((one) => one.own.name === offer.setting).forEach(({ input }) => { input.value = offer.value; }));
  const suits = [h("p", { id: "class" }, classes.size !== 1 ? "The drives are of several classes." : kind ? `The drives are ${className(kind, true)}.` : "The class of the drives is not known."),
    suiting.length ? [h("ul", {}, suiting.map((offer) => h("li", {}, h("code", {}, `${offer.setting}=${offer.value}`), ` ${offer.why}.`))), h("p", {}, h("button", { type: "button", id: "fill-class", onclick: fill }, `Fill in the values for ${className(kind, true)}`))] : null];
  ask({ title: `Settings of ${array.name}`, button: "Apply", cli: command("set", [array.name], "KEY=VALUE \u2026"),
    fields: [suits, fields, h("label", { className: "check", htmlFor: "accept-risk" }, risk, "A volatile write cache may lose unflushed data")],
    act: async () => {
      const settings = Object.fromEntries(inputs.filter(({ input, before }) => input.value !== before).map(({ own, input }) => [own.name, input.value.trim()]));
      if (Object.keys(settings).length) { const value = await change(array.name, "PATCH", "/settings", { settings, accept_risk: risk.checked }); say(value.text.split("\n").filter((line) => /^(note|warning)/.test(line)).join("\n") || "The settings are changed."); }
    } });
}

function cache(array) {
  const own = array.cache;
  return [h("h2", {}, "Cache and journal"), own ? facts([["Size", bytes(own.size_bytes)], ["Not on the members yet", `${bytes(own.dirty_bytes)} of at most ${bytes(own.dirty_max_bytes)}`],
    ["Read hits", `${bytes(own.read_hit_bytes)} of ${bytes(own.read_hit_bytes + own.read_miss_bytes)}`], ["Read ahead and used", `${bytes(own.ahead_used_bytes)} of ${bytes(own.ahead_read_bytes)}`], ["Written", `${bytes(own.written_bytes)}, ${bytes(own.merged_bytes)} of it merged`]]) : h("p", {}, "The server has no cache.", may("Administrator") ? [" ", h("a", { href: "#/settings" }, "Set one"), "."] : null),
  array.journal ? h("p", {}, `Journal: ${array.journal.text}.`) : h("p", {}, "No journal protects its writes.")];
}
