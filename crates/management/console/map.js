// The stripe map: a byte of the array, and the members that hold it.

import { h, bytes, field, fill } from "./ui.js";
import { array as find, get } from "./api.js";

const SHOWN = 8;
const ROLES = { data: "its data", other: "other data", p: "parity P", q: "parity Q", copy: "a copy" };

export function stripeMap(name) {
  const array = find(name);
  const size = array?.size_bytes || 0;
  const chunk = array?.chunk_bytes || 1048576;
  const last = Math.max(0, size - 1);
  const offset = h("input", { value: "0", inputMode: "numeric", id: "offset", autocomplete: "off" });
  const slider = h("input", { type: "range", min: 0, max: Math.max(0, Math.ceil(size / chunk) - 1), step: 1, value: 0, id: "address" });
  const chunks = h("div", { className: "chunks", role: "group", "aria-label": "Chunks of the array from there on" });
  const out = h("div", { "aria-live": "polite" });
  const wanted = () => { const text = offset.value.trim(); return /^\d+$/.test(text) ? Number(text) : text; };
  let asked = 0;
  const look = async (byte) => {
    const own = (asked += 1);
    try {
      const place = await get(`/arrays/${encodeURIComponent(name)}/place?offset=${encodeURIComponent(byte)}`);
      if (own !== asked) return;
      offset.value = String(place.offset_bytes);
      slider.value = String(Math.floor(place.offset_bytes / chunk));
      slider.setAttribute("aria-valuetext", `byte ${place.offset_bytes}`);
      buttons(place.offset_bytes);
      fill(out, h("p", {}, sentence(place)), h("div", { className: "stripe" }, place.members.map(cell)));
    } catch (problem) { if (own === asked) fill(out, h("p", { className: "error" }, problem.message)); }
  };
  const buttons = (byte) => {
    const first = Math.floor(byte / chunk);
    const from = first - (first % SHOWN);
    const focused = chunks.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.nth : null;
    fill(chunks, ...Array.from({ length: SHOWN }, (_, nth) => from + nth).filter((nth) => nth * chunk <= last).map((nth) => {
      const own = h("button", { type: "button", "aria-pressed": String(nth === first), "aria-label": `Chunk ${nth}, byte ${nth * chunk}`, onclick: () => look(nth * chunk) }, String(nth));
      own.dataset.nth = String(nth);
      return own;
    }));
    if (focused) chunks.querySelector(`[data-nth="${focused}"]`)?.focus();
  };
  slider.addEventListener("input", () => look(Number(slider.value) * chunk));
  buttons(0);
  if (size) look(0);
  return h("section", { className: "card" }, h("h2", {}, "Stripe map"),
    h("form", { onsubmit: (event) => { event.preventDefault(); look(wanted()); } },
      field("Address", slider, `From the first byte to the last of ${bytes(size)}.`),
      h("p", { className: "hint" }, `Chunks of ${bytes(chunk)}: click one.`), chunks,
      h("div", { className: "row end" }, field("Byte of the array", offset), h("div", {}, h("button", { className: "main" }, "Show")))), out);
}

function sentence(place) {
  const own = place.members.filter((member) => ["data", "copy"].includes(member.role));
  const where = own.map((member) => `${member.member || "no member"} (slot ${member.slot}), byte ${member.member_offset_bytes} of its data`).join("; and ");
  return `Byte ${place.offset_bytes}${place.stripe === null ? "" : `, stripe ${place.stripe}`}${place.span === null ? "" : `, span ${place.span}`}: ${where}.`;
}

function cell(member) {
  return h("div", { className: `cell ${member.role}` }, h("strong", {}, `Slot ${member.slot}: ${ROLES[member.role] || member.role}`), h("br"), member.member || "no member", h("br"), `byte ${member.member_offset_bytes}`);
}
