// Small charts of the last minutes: two series as stacked bars, a step each. The figures stand beside them in words.

import { count, el, span, svg, sum, time } from "./draw.js";

/** Drawn in these units and stretched to the room there is; what is text stands outside. */
const WIDTH = 600;
const HEIGHT = 60;

/** A scale's end that reads well: 1, 2, 3, 4, 5, 6, 8, 10, 15, 20 … */
function round(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((end) => end >= most && Number.isInteger(end)) ?? most;
}

/** A span that is a whole number of its units: 10s, 10m. */
const short = (ms) => span(ms).replace(".0s", "s").replace(/ 00[sm]$/, "");

function bars(series, end, slot) {
  const room = Math.max(1, slot * 0.82);
  const stacked = [];
  return series.map((one) => {
    let d = "";
    one.values.forEach((value, index) => {
      if (!value) return;
      const height = Math.max(2, (value / end) * HEIGHT);
      const base = HEIGHT - (stacked[index] ?? 0);
      d += `M${(index * slot).toFixed(1)} ${base.toFixed(1)}h${room.toFixed(1)}v${(-height).toFixed(1)}h${(-room).toFixed(1)}z`;
      stacked[index] = (stacked[index] ?? 0) + height;
    });
    return svg("path", { class: `series ${one.kind}`, d });
  });
}

/** The chart of `series`, two of `{ words, kind, values }`, the first at the bottom. */
export function chart(recent, series) {
  const steps = Math.max(...series.map((one) => one.values.length), 1);
  const totals = Array.from({ length: steps }, (_, index) => sum(series.map((one) => one.values[index] ?? 0)));
  const most = Math.max(...totals);
  const end = round(most);
  const slot = WIDTH / steps;
  const step = recent.step_ms || 1;
  const hits = totals.map((_, index) => {
    const words = series.map((one) => `${count(one.values[index] ?? 0)} ${one.words}`).join(", ");
    return svg("rect", { class: "hit", x: index * slot, y: 0, width: slot, height: HEIGHT },
      svg("title", { text: `${time(recent.start_ms + index * step)}: ${words}` }));
  });
  const said = series.map((one) => `${count(sum(one.values))} ${one.words}`).join(", ");
  const label = `The last ${short(steps * step)} in steps of ${short(step)}: ${said}; at most ${count(most)} in one step.`;
  return el("div", { class: "chart" },
    el("span", { class: "scale", text: most ? `${count(end)} in ${short(step)}` : "none" }),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, bars(series, end, slot), hits),
    el("span", { class: "from", text: `${short(steps * step)} ago` }), el("span", { class: "to", text: "now" }));
}
