// Parallel coordinates: an axis per parameter and one for the cost, a line per trial.
// A range is chosen by dragging along an axis, and given up by a click on it.
import { scaleRgb, shade } from "./colours.js";
import { h } from "./dom.js";
import { format, shortened } from "./numbers.js";

const [HEIGHT, TOP, BOTTOM, NARROW, WIDE] = [330, 34, 26, 118, 240];
const isNumber = (value) => typeof value === "number";

// Where the values of one column lie, from 0 (bottom) to 1.
function axisOf({ name, values, log, isCost }) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length && known.every(isNumber)) {
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const scaled = log && low > 0 ? Math.log : (value) => value;
    const span = scaled(high) - scaled(low);
    return { name, isCost, ticks: low === high ? [low] : [low, high], at: (value) => (span ? (scaled(value) - scaled(low)) / span : 0.5) };
  }
  const names = [...new Set(known.map(String))].sort();
  return { name, isCost, ticks: names, at: (value) => (names.length > 1 ? names.indexOf(String(value)) / (names.length - 1) : 0.5) };
}

// columns: [{ name, values, log, isCost }], one value per trial, the best trial first; onChoose(set of kept trials).
export function parallel(columns, { onChoose, onPoint }) {
  const axes = columns.map(axisOf);
  const gap = Math.max(NARROW, Math.min(WIDE, (innerWidth - 120) / axes.length));
  const width = gap * axes.length;
  const x = (column) => gap * (column + 0.5);
  const y = (share) => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
  const count = columns[0]?.values.length ?? 0;
  const ranges = new Map();
  const paths = [...Array(count).keys()].reverse().map((trial) => {
    const points = axes.map((axis, column) => [x(column), y(axis.at(columns[column].values[trial]))]);
    const rank = count > 1 ? 1 - trial / (count - 1) : 1;
    return h("path", {
      d: `M${points.map(([a, b]) => `${a} ${b.toFixed(1)}`).join("L")}`,
      // Strong on either ground: dark on light, bright on dark.
      stroke: shade([0.8 - 0.8 * rank, 0.15 + 0.85 * rank].map((place) => `rgb(${scaleRgb(place)})`)),
      "stroke-opacity": (0.3 + 0.7 * rank).toFixed(2), "stroke-width": (1 + rank).toFixed(2), "data-trial": trial,
      onpointerenter: () => point(trial), onpointerleave: () => point(null),
    });
  });
  const lines = h("g", { class: "trials" }, paths);
  const marks = h("g", {});
  const svg = h("svg", { class: "parallel", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": `${count} trials: a line each through its values and its cost` }, lines, marks);

  function point(trial) {
    for (const path of paths) path.classList.toggle("pointed", path.dataset.trial === String(trial));
    onPoint?.(trial);
  }

  function choose() {
    const kept = new Set([...Array(count).keys()].filter((trial) => [...ranges].every(([column, [low, high]]) => {
      const share = axes[column].at(columns[column].values[trial]);
      return share >= low && share <= high;
    })));
    for (const path of paths) path.classList.toggle("out", !kept.has(Number(path.dataset.trial)));
    onChoose(kept);
  }

  axes.forEach((axis, column) => {
    const band = h("rect", { class: "range", x: x(column) - 7, width: 14, y: 0, height: 0 });
    let from = null;
    const shareAt = (event) => {
      const box = svg.getBoundingClientRect();
      const place = ((event.clientY - box.top) * HEIGHT) / box.height;
      return Math.min(1.02, Math.max(-0.02, 1 - (place - TOP) / (HEIGHT - TOP - BOTTOM)));
    };
    const paint = () => {
      const range = ranges.get(column);
      band.setAttribute("y", range ? y(range[1]) : 0);
      band.setAttribute("height", range ? Math.max(1, y(range[0]) - y(range[1])) : 0);
    };
    const handle = h("rect", { class: "handle", x: x(column) - 16, width: 32, y: TOP - 6, height: HEIGHT - TOP - BOTTOM + 12,
      onpointerdown: (event) => { from = shareAt(event); ranges.delete(column); handle.setPointerCapture(event.pointerId); paint(); choose(); },
      onpointermove: (event) => {
        if (from === null) return;
        const to = shareAt(event);
        if (Math.abs(to - from) > 0.02) ranges.set(column, [Math.min(from, to), Math.max(from, to)]);
        paint();
        choose();
      },
      onpointerup: () => { from = null; } });
    const anchor = { "text-anchor": "middle", x: x(column) };
    const label = h("text", { ...anchor, y: 14, class: axis.isCost ? "cost" : "" }, shortened(axis.name, 17));
    label.append(h("title", {}, axis.name));
    marks.append(
      h("line", { class: "axis", x1: x(column), x2: x(column), y1: TOP, y2: HEIGHT - BOTTOM }), label,
      ...(axis.ticks.length && isNumber(axis.ticks[0])
        ? [h("text", { ...anchor, y: HEIGHT - 8, class: "tick" }, format(axis.ticks[0])), axis.ticks.length > 1 ? h("text", { ...anchor, y: 28, class: "tick" }, format(axis.ticks[1])) : ""]
        : axis.ticks.slice(0, 12).map((name) => h("text", { x: x(column) + 8, y: y(axis.at(name)) + 4, class: "tick" }, shortened(name, 12)))),
      band, handle);
  });
  return { element: h("div", { class: "wide" }, svg), point };
}
