// Lines over the last two minutes, with their scales; the figures are given in words too, for users who cannot see the picture.
// The samples are kept while the console is open, whichever page shows them.

import { h, bytes, fill } from "./ui.js";

const SECONDS = 120;
const SVG = "http://www.w3.org/2000/svg";

/** @typedef {{ at: number, reads: number, writes: number, read_bytes: number, written_bytes: number, latency: number }} Sample
 * @type {Map<string, { before: any, samples: Sample[], latency: number }>} */
const kept = new Map();

/** Note the counters of all arrays, once for each state that the server sends. @param {any[]} arrays */
export function sample(arrays) {
  const at = performance.now();
  for (const name of [...kept.keys()]) if (!arrays.some((own) => own.name === name)) kept.delete(name);
  for (const { name, host } of arrays) {
    const own = kept.get(name) || { before: null, samples: [], latency: 0 };
    kept.set(name, own);
    if (own.before) {
      const seconds = Math.max(0.2, (at - own.before.at) / 1000);
      const per = (key) => Math.max(0, (host[key] - own.before[key]) / seconds);
      own.samples.push({ at, reads: per("reads"), writes: per("writes"), read_bytes: per("read_bytes"), written_bytes: per("written_bytes"), latency: own.latency });
    }
    own.before = { ...host, at };
    own.samples = own.samples.filter((one) => at - one.at <= SECONDS * 1000);
  }
}
/** Note the mean latency of an array. @param {string} name @param {number} nanos */
export function noteLatency(name, nanos) {
  const own = kept.get(name);
  if (own) own.latency = nanos;
}
/** @param {string} name */
export const samples = (name) => kept.get(name)?.samples || [];

/** The end of a scale: 1, 2 or 5 times a power of ten; of bytes, times a power of 1024. @param {number} most @param {boolean} ofBytes */
export function scaleEnd(most, ofBytes = false) {
  let unit = 1;
  while (ofBytes && most > 512 * unit) unit *= 1024;
  let end = unit;
  for (let nth = 0; end < most; nth += 1) end = unit * [1, 2, 5][nth % 3] * 10 ** Math.floor(nth / 3);
  return end;
}

const svg = (kind, attributes) => {
  const element = document.createElementNS(SVG, kind);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

export class Chart {
  /** @param {string} title @param {(value: number) => string} format @param {((own: Sample) => number)[]} of the value of each line
   * @param {{ names?: string[], ofBytes?: boolean, least: number }} more names of the lines; the least end of the scale */
  constructor(title, format, of, { names = [title], ofBytes = false, least }) {
    this.title = title; this.format = format; this.of = of; this.names = names; this.ofBytes = ofBytes; this.least = least;
    this.svg = svg("svg", { viewBox: `0 0 ${SECONDS} 100`, preserveAspectRatio: "none", role: "img", "aria-label": title });
    [0, 50, 100].forEach((y) => this.svg.append(svg("line", { x1: 0, x2: SECONDS, y1: y, y2: y })));
    this.lines = of.map((_, nth) => { const line = svg("polyline", { class: nth ? "b" : "a" }); this.svg.append(line); return line; });
    this.now = h("span", {}, "no samples yet");
    this.steps = [1, 0.5, 0].map(() => h("span", {}));
    this.element = h("div", { className: "chart" }, h("p", { className: "hint" }, `${title}: `, this.now),
      h("div", { className: "plot" }, h("div", { className: "scale", "aria-hidden": "true" }, this.steps), this.svg),
      h("div", { className: "times", "aria-hidden": "true" }, ["2 min ago", "1 min ago", "now"].map((text) => h("span", {}, text))));
  }
  /** @param {Sample[]} all @param {string} [more] further figures in words */
  draw(all, more = "") {
    if (!all.length) return;
    const last = all[all.length - 1];
    const values = all.map((own) => this.of.map((line) => line(own)));
    const most = Math.max(0, ...values.flat());
    const end = scaleEnd(Math.max(this.least, most), this.ofBytes);
    this.steps.forEach((step, nth) => { step.textContent = this.format(end * [1, 0.5, 0][nth]); });
    this.lines.forEach((line, nth) => line.setAttribute("points", all.map((own, at) => `${(SECONDS - (last.at - own.at) / 1000).toFixed(1)},${(100 - (100 * values[at][nth]) / end).toFixed(1)}`).join(" ")));
    const now = values[values.length - 1];
    const words = now.map((value, nth) => (this.names.length > 1 ? `${this.names[nth]} ${this.format(value)}` : this.format(value)));
    fill(this.now, ...words.flatMap((text, nth) => [nth ? ", " : "", this.names.length > 1 ? h("i", { className: nth ? "key b" : "key a" }) : "", text]), `${more} (highest ${this.format(most)})`);
    this.svg.setAttribute("aria-label", `${this.title}: ${words.join(", ")}${more}; the scale ends at ${this.format(end)}`);
  }
}

const whole = (value) => String(Math.round(value * 10) / 10);
const milliseconds = (nanos) => `${(nanos / 1e6).toFixed(2)} ms`;
const each = (value) => `${bytes(value)}/s`;
/** The charts of an array's page. */
export const charts = () => [
  new Chart("Requests a second", whole, [(own) => own.reads, (own) => own.writes], { names: ["reads", "writes"], least: 10 }),
  new Chart("Throughput", each, [(own) => own.read_bytes, (own) => own.written_bytes], { names: ["read", "written"], ofBytes: true, least: 1024 }),
  new Chart("Mean latency", milliseconds, [(own) => own.latency], { least: 1e6 }),
];
/** The chart of an array's card. */
export const loadChart = () => new Chart("Load", (value) => `${whole(value)} requests/s`, [(own) => own.reads + own.writes], { least: 10 });
