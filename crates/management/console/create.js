// The wizard: drives, level, what it would be and do, and then the array.

import { h, bytes, facts, field, part, say, select, table, tag, fill } from "./ui.js";
import { call, get, may, state } from "./api.js";
import { freeDrives } from "./drives.js";
import { className, command, count, hours, speed } from "./words.js";

const LEVELS = [["6", "RAID 6: any two members may fail"], ["5", "RAID 5: any one member may fail"], ["10", "RAID 10: copies, striped"], ["1", "RAID 1: copies"], ["0", "RAID 0: fast, no redundancy"], ["50", "RAID 50: a stripe over RAID 5"], ["60", "RAID 60: a stripe over RAID 6"], ["single", "Single: one drive"]];
/** The levels that are proposed for one member, two, three, and more. */
const SUITING = ["single", "1", "5", "6"];
const ASK_AGAIN_MS = 1000;
const survives = (own) => (own ? `any ${own === 1 ? "member" : `${own} members`}` : "no loss");

export function page(main) {
  if (!may("Administrator")) {
    main.append(h("h1", {}, "Create an array"), h("p", {}, "Only administrators make arrays."));
    return () => {};
  }
  const name = h("input", { required: true, value: state.arrays.some((own) => own.name === "data") ? "" : "data", spellcheck: false });
  const level = select(LEVELS, "6");
  const drives = h("textarea", { rows: 6, required: true, spellcheck: false, placeholder: "/dev/disk/by-id/\u2026" });
  const spares = h("textarea", { rows: 2, spellcheck: false });
  const chunk = h("input", { placeholder: "512K", spellcheck: false });
  const spans = h("input", { placeholder: "2 (only 50 and 60)", inputMode: "numeric" });
  const overwrite = h("input", { type: "checkbox", id: "overwrite" });
  const typed = h("input", { id: "confirm-name", autocomplete: "off" });
  const work = h("select", {});
  const profile = h("select", {});
  const out = h("section", { className: "card", "aria-live": "polite" }, h("h2", {}, "What it would be"), h("p", {}, "Fill the form and press Preview. Nothing is written before Create."));
  const beside = h("section", { className: "card", hidden: true });
  const lines = (own) => own.value.split("\n").map((line) => line.trim()).filter(Boolean);
  const creation = (of = level.value) => ({ name: name.value.trim(), level: of, members: lines(drives), spares: lines(spares), chunk: chunk.value.trim() || null, spans: spans.value.trim() ? Number(spans.value) : null, overwrite: overwrite.checked });
  const error = (problem) => fill(out, h("h2", {}, "This cannot be made"), h("p", { className: "error" }, problem.message));
  let asked = 0;
  const preview = async (event) => {
    event?.preventDefault();
    const own = creation();
    const turn = (asked += 1);
    try {
      const { value } = await call("POST", "/plan", own);
      shown(value, own);
    } catch (problem) { error(problem); }
    const plans = [];
    for (const [key] of LEVELS) {
      if (turn !== asked) return;
      try { plans.push([key, (await call("POST", "/plan", { ...own, level: key, spans: ["50", "60"].includes(key) ? own.spans : null })).value]); } catch (problem) { plans.push([key, null, problem.message]); }
    }
    if (turn === asked && plans.some(([, plan]) => plan)) predict(turn, own, plans);
  };
  const shown = (value, own) => {
    const risky = value.holds.length > 0;
    const suit = h("input", { type: "checkbox", id: "suit-class" });
    const wanted = Object.fromEntries(value.offers.map((offer) => [offer.setting, offer.value]));
    const go = h("button", { className: risky ? "risk" : "main", type: "button", disabled: risky, onclick: async () => {
      go.disabled = true;
      try { const made = (await call("POST", "/arrays", creation())).value; say(made.text); if (suit.checked) await call("PATCH", `/arrays/${encodeURIComponent(made.array.name)}/settings`, { settings: wanted }); location.hash = `#/array/${encodeURIComponent(made.array.name)}/disk`; } catch (problem) { error(problem); }
    } }, "Create");
    typed.oninput = () => { go.disabled = risky && !(overwrite.checked && typed.value === own.name); };
    fill(out, h("h2", {}, "What it would be"), facts([["Capacity", bytes(value.size_bytes)], ["Survives", value.survives ? `the loss of ${survives(value.survives)}` : "no loss of a member"], ["Level", value.level], ["Drives", className(value.class, true)], ["Chunk", value.chunk_bytes ? bytes(value.chunk_bytes) : "none"], ["Spares", count(own.spares.length, "spare")]]),
      h("p", { className: "hint" }, "This was a dry run: nothing is written. The same on the command line (", h("code", {}, "--dry-run"), " shows it there):"), h("pre", { id: "cli" }, value.command),
      risky ? [h("p", { className: "error" }, "These drives hold something that would be overwritten:"), h("ul", {}, value.holds.map((line) => h("li", {}, line))), overwrite.checked ? null : h("p", {}, "Tick \u201cThe content of the drives may be lost\u201d and press Preview again."), field(`Type ${own.name} to confirm`, typed)] : "",
      value.offers.length ? [h("ul", {}, value.offers.map((offer) => h("li", {}, h("code", {}, command("set", [own.name, `${offer.setting}=${offer.value}`])), ` ${offer.why}`))), h("label", { className: "check", htmlFor: "suit-class" }, suit, `Set these values for ${className(value.class, true)} too`)] : "", go);
  };
  /** Levels side by side: what they are at once, and what they would do as soon as it is computed. */
  const predict = async (turn, own, plans) => {
    let predicted = null;
    const show = () => {
      const of = (key) => predicted?.levels.find((one) => one.level === key);
      const rows = plans.map(([key, plan, why]) => {
        if (!plan) return [key, h("td", { colSpan: 6 }, `not possible: ${why}`)];
        const one = of(key);
        const wait = predicted?.waits !== false ? "is computed \u2026" : "\u2013";
        const cell = (text) => (one ? text(one) : wait);
        const healthy = one?.impossible ? `not simulated: ${one.impossible}` : cell((l) => speed(l.healthy));
        const choose = key === own.level ? tag("chosen", "optimal") : h("button", { id: `level-${key}`, type: "button", "aria-label": `Choose level ${key}`, onclick: () => { level.value = key; preview(); } }, "Choose");
        return [key, bytes(plan.size_bytes), survives(plan.survives), healthy, cell((l) => speed(l.degraded)), cell((l) => (l.rebuild_hours === null ? "\u2013" : `${hours(l.rebuild_hours)}, under the load ${hours(l.rebuild_loaded_hours)}`)), h("td", { className: "act" }, choose)];
      });
      beside.hidden = false;
      fill(beside, h("h2", {}, "Levels side by side"),
        h("div", { className: "row" }, field("Load", work), field("Drives answer as", profile)),
        predicted?.waits ? h("progress", { max: predicted.total || 1, value: predicted.total ? predicted.done : null, "aria-label": predicted.total ? `${predicted.done} of ${predicted.total} runs of the simulator are done` : "The simulator begins" }) : null,
        predicted ? h("p", { className: "hint", id: "stands-for" }, predicted.error ? `There is no prediction: ${predicted.error}` : `Predicted for ${predicted.drive_title}: ${predicted.why}. Times of a rebuild are for the size of your drives. `, h("code", {}, predicted.command)) : h("p", { className: "hint" }, "Waiting for the simulator \u2026"),
        table("Levels", ["Level", "Capacity", "Survives the loss of", "Healthy", "One member missing", "Rebuild", "Choose"], rows));
    };
    const busy = () => beside.contains(document.activeElement) && document.activeElement?.tagName === "SELECT";
    show();
    while (turn === asked && beside.isConnected) {
      try { predicted = (await call("POST", "/predictions", { creation: own, load: work.value || null, drive: profile.value || null })).value; } catch (problem) { predicted = { waits: false, levels: [], error: problem.message, drive: "", command: "" }; }
      if (turn !== asked) return;
      if (!busy()) show();
      if (!predicted.waits) { show(); return; }
      await new Promise((then) => { setTimeout(then, ASK_AGAIN_MS); });
    }
  };
  [work, profile].forEach((input) => input.addEventListener("change", () => preview()));
  get("/lab/choices").then((choices) => {
    work.append(...choices.loads.map((own) => h("option", { value: own.name }, `${own.name}: ${own.title}`)));
    profile.append(h("option", { value: "" }, "the nearest profile"), ...choices.drives.map((own) => h("option", { value: own.name }, own.title)));
  }, () => {});
  const free = h("div", {});
  const typedPaths = h("details", { id: "paths", open: true }, h("summary", {}, "Type the paths of files, remote exports or other drives"), field("Members", drives, "One path on each line. Files and devices both work; they must be there."), field("Spares", spares, "One path on each line; may be empty."));
  // The level that suits the number of members, until the user chooses one.
  let chose = false;
  level.addEventListener("change", () => { chose = true; });
  const suit = () => { const members = lines(drives).length; if (!chose && members) level.value = SUITING[Math.min(members, SUITING.length) - 1]; };
  drives.addEventListener("change", suit);
  freeDrives().then((all) => {
    if (!all.length) {
      fill(free, h("h2", {}, "Drives that nothing uses"), h("p", {}, "There is none: each drive of this machine is in use. Files and remote exports can be typed here, and an array takes another drive as soon as it is there."));
      return;
    }
    const put = (path, use) => {
      for (const [list, key] of [[drives, "member"], [spares, "spare"]]) list.value = [...lines(list).filter((line) => line !== path), ...(use === key ? [path] : [])].join("\n");
      suit();
    };
    const row = ([path, text], nth) => {
      const own = h("select", { id: `free-${nth}`, "aria-label": `Use of ${path}`, onchange: () => put(path, own.value) }, [["", "not used"], ["member", "member"], ["spare", "spare"]].map(([value, words]) => h("option", { value, selected: (lines(drives).includes(path) && value === "member") || (lines(spares).includes(path) && value === "spare") }, words)));
      return [own, h("td", { className: "path" }, path), text];
    };
    const every = h("button", { type: "button", id: "use-all", onclick: () => all.forEach(([path], nth) => { /** @type {HTMLSelectElement} */ (part(`free-${nth}`)).value = "member"; put(path, "member"); }) }, "Use all of them");
    fill(free, h("h2", {}, "Drives that nothing uses"), table("Drives that nothing uses", ["Use", "Drive", "Size, model, serial, content"], all.map(row)), every);
    typedPaths.open = lines(drives).length + lines(spares).length > 0;
  }, () => {});
  main.append(h("h1", {}, "Create an array"), h("form", { className: "card", onsubmit: preview },
    field("Name", name, "Clients find the array by it."), free, typedPaths, field("Level", level), h("details", {}, h("summary", {}, "Chunk and spans"), h("div", { className: "row" }, field("Chunk", chunk), field("Spans", spans))), h("label", { className: "check", htmlFor: "overwrite" }, overwrite, "The content of the drives may be lost"), h("p", {}, h("button", { className: "main" }, "Preview"))), beside, out);
  return () => {};
}
