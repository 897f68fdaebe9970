// A line over the last two minutes; the figure is given in words too, for users who cannot see the picture.

import { h } from "./ui.js";

const POINTS = 120;
const SVG = "http://www.w3.org/2000/svg";

export class Chart {
  constructor(title, format, names = [title]) {
    this.title = title; this.format = format; this.names = names;
    /** @type {number[][]} */
    this.values = names.map(() => []);
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("class", "chart");
    this.svg.setAttribute("viewBox", `0 0 ${POINTS} 100`);
    this.svg.setAttribute("preserveAspectRatio", "none");
    this.svg.setAttribute("role", "img");
    this.lines = names.map((_, nth) => {
      const line = document.createElementNS(SVG, "polyline");
      line.setAttribute("class", nth ? "b" : "a");
      this.svg.append(line);
      return line;
    });
    this.now = h("span", {});
    this.element = h("div", {}, h("p", { className: "hint" }, `${title}: `, this.now), this.svg);
  }
  /** @param {number[]} values @param {string} [more] further figures in words */
  add(values, more = "") {
    values.forEach((value, nth) => { this.values[nth].push(value); if (this.values[nth].length > POINTS) this.values[nth].shift(); });
    const top = Math.max(1, ...this.values.flat());
    this.values.forEach((own, nth) => this.lines[nth].setAttribute("points", own.map((value, at) => `${POINTS - own.length + at},${(98 - (95 * value) / top).toFixed(1)}`).join(" ")));
    const text = values.map((value, nth) => (this.names.length > 1 ? `${this.names[nth]} ${this.format(value)}` : this.format(value))).join(", ") + more;
    this.now.textContent = `${text} (highest ${this.format(Math.max(...this.values.flat()))})`;
    this.svg.setAttribute("aria-label", `${this.title}: ${text}`);
  }
}
