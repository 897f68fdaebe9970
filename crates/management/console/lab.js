// The laboratory: jobs that the server runs beside its work, and their reports.

import { h, ask, bytes, facts, field, keyed, operate, say, select, table, tag, time, fill } from "./ui.js";
import { call, get, may } from "./api.js";
import { command, count, hours, percentText, speed, STATES } from "./words.js";

const list = (input) => input.value.split(/[\s,]+/).filter(Boolean);
const file = (report, name) => `/api/v1/lab/reports/${encodeURIComponent(report)}/${name}`;
const HOW = { running: "degraded", done: "optimal", failed: "failed", cancelled: "" };

export function page(main, name) {
  if (name) return planPage(main, name);
  const jobs = h("section", { className: "card", "aria-live": "polite" });
  const reports = h("section", { className: "card" });
  const form = h("section", { className: "card" }, h("h2", {}, "New"), h("p", {}, "Reading the list of profiles \u2026"));
  main.append(h("h1", {}, "Laboratory"), h("p", {}, "Predicted figures of arrays, computed by the same engine in virtual time. Jobs run next to the server at the lowest priority, one at a time; no drive is read or written."), jobs, form, reports);
  /** @type {Set<string>} */
  const chosen = new Set();
  const load = async () => {
    const lab = await get("/lab");
    keyed(jobs, lab.jobs, () => jobList(lab.jobs, load));
    keyed(reports, [lab.reports, lab.folder], () => reportList(lab, chosen, load));
    return lab;
  };
  form.hidden = !may("Operator");
  if (!form.hidden) get("/lab/choices").then((choices) => fill(form, ...forms(choices, load)), (problem) => say(problem.message));
  load().catch((problem) => say(problem.message));
  let ticks = 0;
  return () => { if ((ticks += 1) % 2) load().catch(() => {}); };
}

function jobList(jobs, load) {
  const cancel = async (job) => { try { await call("DELETE", `/lab/jobs/${job.number}`); say(`${job.name} is being cancelled.`); load(); } catch (problem) { say(problem.message); } };
  const shown = jobs.slice(0, 5);
  return [h("h2", {}, "Jobs"), shown.length ? table("Jobs", ["Report", "Kind", "State", "Begun", "By", "Result", "Actions"], shown.map((job) => [
    job.name, job.kind, tag(STATES[job.state] || job.state, HOW[job.state]), time(job.began_seconds), job.user,
    job.state === "running" ? [h("progress", { max: job.total || 1, value: job.total ? job.done : null, "aria-label": `${job.name}: ${job.total ? `${job.done} of ${job.total} runs` : "begins"}` }), h("br"), job.total ? `${job.done} of ${count(job.total, "run")}` : "begins"] : job.text,
    h("td", { className: "act" }, job.state === "running" ? operate({ id: `cancel-${job.number}`, "aria-label": `Cancel ${job.name}`, onclick: () => cancel(job) }, "Cancel") : null)])) : h("p", {}, "No job was begun since the server was started.")];
}

function reportList(lab, chosen, load) {
  const compare = h("button", { id: "compare", disabled: true, hidden: !may("Operator"), onclick: () => { const [a, b] = chosen; compareTwo(a, b, load); } }, "Compare the two chosen reviews");
  const choose = () => { compare.disabled = chosen.size !== 2; };
  for (const name of chosen) if (!lab.reports.some((report) => report.name === name && report.kind === "review")) chosen.delete(name);
  choose();
  const rows = lab.reports.map((report) => {
    const box = h("input", { type: "checkbox", "aria-label": `Choose ${report.name}`, id: `choose-${report.name}`, checked: chosen.has(report.name), onchange: () => { if (box.checked) chosen.add(report.name); else chosen.delete(report.name); choose(); } });
    const link = report.files.includes("report.html") ? h("a", { href: file(report.name, "report.html"), target: "_blank", rel: "noopener" }, report.name) : report.kind === "plan" ? h("a", { href: `#/lab/${encodeURIComponent(report.name)}` }, report.name) : report.name;
    return [report.kind === "review" ? box : "\u2013", link, report.kind === "part" ? "not ended: start it again to continue" : report.kind, time(report.at_seconds), h("td", {}, report.command ? h("code", {}, report.command) : "\u2013"),
      h("td", { className: "act" }, operate({ className: "risk", id: `remove-${report.name}`, "aria-label": `Remove ${report.name}`, onclick: () => remove(report.name, load) }, "Remove"))];
  });
  return [h("h2", {}, "Reports"), rows.length ? [table("Reports", ["Choose", "Report", "Kind", "Written", "Made by", "Actions"], rows), h("p", {}, compare)] : h("p", {}, "No reports yet."),
    h("p", { className: "hint" }, "They are in ", h("code", {}, lab.folder), "; a review that ", h("code", {}, "openraid-lab review --out"), ` puts there is shown too. At most ${lab.reports_max} are kept.`)];
}

function remove(name, load) {
  ask({ title: `Remove ${name}`, risk: true, name, text: "Its files are deleted.", button: "Remove", act: async (typed) => { await call("DELETE", `/lab/reports/${encodeURIComponent(name)}`, { confirm: typed }); load(); } });
}

function compareTwo(a, b, load) {
  const name = h("input", { required: true, value: `${a}-${b}`.slice(0, 60), spellcheck: false });
  ask({ title: `Compare ${a} with ${b}`, text: "Cells in both are shown side by side.", button: "Compare", fields: field("Name of the report", name), cli: command("compare", [a, b]),
    act: async () => { await call("POST", "/lab/comparisons", { name: name.value.trim(), a, b }); load(); } });
}

function forms(choices, load) {
  const options = (all) => all.map((own) => [own.name, `${own.name}: ${own.title}`]);
  const error = h("p", { className: "error", role: "alert" });
  const kind = select([["plan", "What if: arrays side by side under one load"], ["review", "Review: methods over arrays, with charts"]], "plan");
  const name = h("input", { required: true, spellcheck: false, autocomplete: "off", placeholder: "first" });
  const system = select(options(choices.systems), "openraid");
  const drive = select([["", "the controller's own"], ...options(choices.drives)], "");
  const other = select([["", "no other"], ...options(choices.drives)], "");
  const cache = h("input", { inputMode: "numeric", placeholder: "as in the profile" });
  const drives = h("input", { value: "4, 6, 8" });
  const levels = h("input", { placeholder: "all that fit" });
  const workload = select(options(choices.loads), "database");
  const depth = h("input", { inputMode: "numeric", placeholder: "as the load has it" });
  const arrays = h("input", { value: "single, raid5x4, raid10x4" });
  const methods = h("select", { multiple: true, size: 5, required: true }, choices.methods.map((own) => h("option", { value: own.name, selected: ["sequential", "database"].includes(own.name) }, `${own.name}: ${own.title}`)));
  const thorough = h("input", { type: "checkbox", id: "thorough" });
  const nearest = h("input", { type: "checkbox", id: "nearest" });
  const plan = h("div", {}, h("div", { className: "row" }, field("Numbers of drives", drives, "Each is a machine of its own."), field("Levels", levels, "As in 5, 6, 10.")), field("Other drive to compare with", other), h("label", { className: "check", htmlFor: "nearest" }, nearest, "My drives are others: these profiles are the nearest (ranges are wider)"), h("div", { className: "row" }, field("Load", workload), field("Queue depth", depth)));
  const review = h("div", { hidden: true }, field("Arrays", arrays, "As in single, raid5x4, raid10x8."), field("Methods", methods, "Choose several with Ctrl or Shift."), h("label", { className: "check", htmlFor: "thorough" }, thorough, "Means within 1 % (takes longer)"));
  kind.addEventListener("change", () => { plan.hidden = kind.value !== "plan"; review.hidden = kind.value !== "review"; methods.required = !review.hidden; });
  methods.required = false;
  const number = (input) => (input.value.trim() ? Number(input.value) : null);
  const begin = async (event) => {
    event.preventDefault();
    const base = { name: name.value.trim(), system: system.value, cache_mib: number(cache) };
    const both = [...new Set([drive.value, other.value].filter(Boolean))];
    const input = kind.value === "plan"
      ? { ...base, drive: other.value && !drive.value ? [] : both, nearest: nearest.checked, drives: list(drives).map(Number), levels: list(levels), load: workload.value, depth: number(depth) }
      : { ...base, drive: drive.value || null, arrays: list(arrays), methods: [...methods.selectedOptions].map((own) => own.value), thorough: thorough.checked };
    error.textContent = "";
    if (kind.value === "plan" && other.value && !drive.value) { error.textContent = "Choose the first drive too: the other one is compared with it."; return; }
    try { const job = (await call("POST", `/lab/${kind.value}s`, input)).value; say(`${job.name} has begun.`); name.value = ""; load(); } catch (problem) { error.textContent = problem.message; }
  };
  return [h("h2", {}, "New"), h("form", { onsubmit: begin }, field("What", kind), field("Name of the report", name), h("div", { className: "row" }, field("Controller", system), field("Drive", drive), field("Cache, MiB", cache)), plan, review, error, h("p", {}, h("button", { className: "main" }, "Begin")))];
}

/** The answer of a plan. */
function planPage(main, name) {
  const out = h("div", {}, h("p", {}, "Reading \u2026"));
  main.append(h("h1", {}, name), h("p", {}, h("a", { href: "#/lab" }, "All reports")), out);
  fetch(file(name, "plan.json")).then(async (answer) => {
    if (!answer.ok) throw new Error((await answer.json()).detail);
    const plan = await answer.json();
    fill(out, ...[plan, ...plan.more].map(machine), plan.across.length ? h("section", { className: "card" }, h("h2", {}, "Across machines"), h("ul", {}, plan.across.map((line) => h("li", {}, line)))) : "");
  }).catch((problem) => fill(out, h("p", { className: "error" }, problem.message)));
  return () => {};
}

/** A time with its range. */
const within = (time, range) => (range ? `${hours(time)} (${hours(range[0])} to ${hours(range[1])})` : hours(time));

/** The parts that the ranges know, as rows of facts. */
function known(plan) {
  const level = plan.levels.find((one) => one.possible?.knowledge);
  if (!level) return [];
  const fits = { measured: "of this part, with measured values", sheet: "of this part, from its sheet", class: "of the class", nearest: "the nearest, of another part" };
  const { drive, host, place } = level.possible.knowledge;
  return [["Profile of the drives", fits[drive]], ["Profile of the host", fits[host]], ["Place of the load", place ? "known" : "not known"]];
}

function machine(plan) {
  const rows = plan.levels.map((level) => {
    if (level.impossible) return [level.impossible.array, "\u2013", "\u2013", "\u2013", "\u2013", "\u2013", "\u2013", `not possible: ${level.impossible.reason}`];
    const own = level.possible;
    return [own.array, bytes(own.capacity), own.survives[0] === own.survives[1] ? String(own.survives[0]) : `${own.survives[0]} to ${own.survives[1]}`, `${speed(own.healthy)} (\u2212${Math.round(own.low_percent)} to +${Math.round(own.high_percent)} %)`, speed(own.degraded), speed(own.rebuilding), own.rebuild ? `${within(own.rebuild.idle_hours, own.rebuild.idle_hours_range)}, under the load ${within(own.rebuild.loaded_hours, own.rebuild.loaded_hours_range)}` : "\u2013",
      own.loss ? `array ${percentText(own.loss.array_five_years[0])}, sectors ${percentText(own.loss.sector_five_years[0])} in five years` : "\u2013"];
  });
  return h("section", { className: "card" }, h("h2", {}, `${count(plan.drives, "drive")}: ${plan.drive}, ${plan.system}`),
    plan.recommendation ? [h("p", {}, `Recommended: ${plan.recommendation.array}.`), h("ul", {}, plan.recommendation.reasons.map((line) => h("li", {}, line)))] : h("p", {}, "No level can be recommended."),
    table(`Levels of ${plan.drives} times ${plan.drive}`, ["Array", "Capacity", "Failures survived", "Healthy", "One member missing", "Rebuilding", "Rebuild", "Data loss"], rows),
    h("details", {}, h("summary", {}, "Why, and how certain"), facts([["Load", plan.load], ["Bus", plan.bus], ["Size of each drive", bytes(plan.drive_bytes)], ...known(plan)]), h("ul", {}, plan.advice.map((line) => h("li", {}, line.trim())))));
}
