import { h, bytes, facts, field, say, select } from "./ui.js";
import { call } from "./api.js";

const LEVELS = [["6", "RAID 6: any two members may fail"], ["5", "RAID 5: any one member may fail"], ["10", "RAID 10: copies, striped"], ["1", "RAID 1: copies"], ["0", "RAID 0: fast, no redundancy"], ["50", "RAID 50: a stripe over RAID 5"], ["60", "RAID 60: a stripe over RAID 6"], ["single", "Single: one drive"]];

export function page(main) {
  const name = h("input", { required: true, value: "data", spellcheck: false });
  const level = select(LEVELS, "6");
  const drives = h("textarea", { rows: 6, required: true, spellcheck: false, placeholder: "/dev/disk/by-id/\u2026" });
  const spares = h("textarea", { rows: 2, spellcheck: false });
  const chunk = h("input", { placeholder: "512K", spellcheck: false });
  const spans = h("input", { placeholder: "2 (only 50 and 60)", inputMode: "numeric" });
  const overwrite = h("input", { type: "checkbox", id: "overwrite" });
  const typed = h("input", { id: "confirm-name", autocomplete: "off" });
  const out = h("section", { className: "card", "aria-live": "polite" }, h("h2", {}, "What it would be"), h("p", {}, "Fill the form and press Preview. Nothing is written before Create."));
  const lines = (own) => own.value.split("\n").map((line) => line.trim()).filter(Boolean);
  const wish = (of = level.value) => ({ name: name.value.trim(), level: of, members: lines(drives), spares: lines(spares), chunk: chunk.value.trim() || null, spans: spans.value.trim() ? Number(spans.value) : null, overwrite: overwrite.checked });
  const error = (problem) => out.replaceChildren(h("h2", {}, "This cannot be made"), h("p", { className: "error" }, problem.message));
  const preview = async (event) => {
    event?.preventDefault();
    const own = wish();
    try {
      const { value } = await call("POST", "/plan", own);
      const others = await Promise.all(LEVELS.filter(([key]) => key !== own.level).map(async ([key]) => { try { return [key, (await call("POST", "/plan", wish(key))).value]; } catch { return null; } }));
      const risky = value.holds.length > 0;
      const go = h("button", { className: risky ? "risk" : "main", type: "button", disabled: risky, onclick: async () => {
        go.disabled = true;
        try { const made = (await call("POST", "/arrays", wish())).value; say(made.text); location.hash = `#/array/${encodeURIComponent(made.array.name)}`; } catch (problem) { error(problem); }
      } }, "Create");
      typed.oninput = () => { go.disabled = risky && !(overwrite.checked && typed.value === own.name); };
      out.replaceChildren(h("h2", {}, "What it would be"), facts([["Capacity", bytes(value.size_bytes)], ["Survives", value.survives ? `the loss of any ${value.survives}` : "no loss of a member"], ["Level", value.level], ["Chunk", value.chunk_bytes ? bytes(value.chunk_bytes) : "none"]]),
        h("p", { className: "hint" }, "The same drives otherwise: ", others.filter(Boolean).map(([key, plan]) => `${key}: ${bytes(plan.size_bytes)}, survives ${plan.survives}`).join("; ") || "no other level fits"),
        h("p", { className: "hint" }, "The same on the command line:"), h("pre", { id: "cli" }, value.command),
        h("p", { className: "hint" }, "Predicted speed and rebuild time: ", h("code", {}, `openraid plan --help`), " simulates the drives that you name."),
        risky ? [h("p", { className: "error" }, "These drives hold something that would be overwritten:"), h("ul", {}, value.holds.map((own) => h("li", {}, own))), field(`Type ${own.name} to confirm`, typed)] : null, go);
    } catch (problem) { error(problem); }
  };
  main.append(h("h1", {}, "Create an array"), h("form", { className: "card", onsubmit: preview },
    field("Name", name), field("Level", level), field("Members", drives, "One path on each line. Files and devices both work; they must be there."), field("Spares", spares, "One path on each line; may be empty."),
    h("div", { className: "row" }, field("Chunk", chunk), field("Spans", spans)), h("label", { className: "check", htmlFor: "overwrite" }, overwrite, "The content of the drives may be lost"), h("p", {}, h("button", { className: "main" }, "Preview"))), out);
  return () => {};
}
