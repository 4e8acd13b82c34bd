// Charts by uPlot: lines with bands, stacked areas, heat maps. Every chart of every page is made here.
//   const chart = lineChart(element, spec); chart.update(spec); chart.destroy();
// A spec is plain data; x values are whatever the x axis shows (steps, episodes, seconds).
import { FAINT, GRID, scaleRgb, shade, withAlpha } from "./colours.js";
import { h } from "./dom.js";
import { format, formatTicks, shortened } from "./numbers.js";

/* global uPlot */

const FONT = "11px system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif";
const LETTER_PX = 6.2;

// Charts that share zoom and cursor. `onZoom([first, last] or null)` is told once per change.
export class Group {
  constructor(onZoom = () => {}) {
    this.charts = new Set();
    this.zoom = null;
    this.onZoom = onZoom;
    this.key = `group-${Math.random()}`;
    this.isMoving = false;
  }

  moveTo(zoom) {
    if (this.isMoving) return;
    this.isMoving = true;
    this.zoom = zoom;
    for (const chart of this.charts) chart.moveTo(zoom);
    this.isMoving = false;
    this.onZoom(zoom);
  }
}

// The ends of a y axis that shows all values. It starts at 0 where they come near it, so that
// heights can be compared.
export function linearRange(values) {
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!values.length) return [0, 1];
  if (high - low <= 1e-12 * Math.max(Math.abs(low), Math.abs(high))) return low === 0 ? [0, 1] : low > 0 ? [0, 2 * low] : [2 * low, 0];
  const margin = 0.04 * (high - low);
  return [low >= 0 && low <= 0.3 * high ? 0 : low - margin, high <= 0 && high >= 0.3 * low ? 0 : high + margin];
}

export function logRange(values) {
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const margin = high / low < 1.01 ? 2 : (high / low) ** 0.04;
  return [low / margin, high * margin];
}

function yAxisOf(spec) {
  const values = spec.lines.flatMap((line) => [line.y, line.low ?? [], line.high ?? []].flat()).filter((y) => y !== null && y !== undefined);
  const positive = spec.log ? values.filter((y) => y > 0) : [];
  if (positive.length) return { distr: 3, range: logRange(positive) };
  return { distr: 1, range: spec.yRange ?? linearRange(values) };
}

// Points without neighbours are drawn as dots; others only where points are far apart.
const isolated = (u, series, shown) => {
  if (shown) return null;
  const known = [...u.data[series].keys()].filter((k) => u.data[series][k] !== undefined);
  return known.filter((k, place) =>
    [place - 1, place, place + 1].every((p) => ((u.data[series][known[p]] ?? null) !== null) === (p === place)));
};

// One uPlot series per line, and two more for the ends of its band.
function linesOf(spec, axis) {
  const clean = (ys) => (axis.distr === 3 ? ys.map((y) => (y > 0 ? y : null)) : ys);
  const [tables, series, bands] = [[], [], []];
  for (const line of spec.lines) {
    const stroke = shade(line.colour);
    const isAlone = line.y.filter((y) => y !== null && y !== undefined).length === 1;
    tables.push([line.x, clean(line.y)]);
    series.push({
      label: line.name,
      class: line.isBehind ? "band-end" : undefined,
      width: line.width ?? 1.75,
      stroke,
      dash: line.dash ?? [],
      paths: line.isStepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
      value: (u, value) => (line.format ?? format)(value),
      points: { filter: line.points ? undefined : isolated, show: line.points || undefined, size: isAlone ? 9 : line.points ? 6 : 4, space: line.points ? 0 : 25, fill: stroke },
    });
    if (line.high) {
      const place = series.length;
      for (const end of ["high", "low"]) {
        tables.push([line.x, clean(line[end])]);
        series.push({ label: `${line.name} ${end}`, width: 0, stroke: "transparent", points: { show: false }, class: "band-end" });
      }
      bands.push({ series: [place + 1, place + 2], fill: withAlpha(stroke, 0.16) });
    }
  }
  return { data: tables.length ? uPlot.join(tables) : [[]], series, bands };
}

// Each area reaches from 0 to the sum of its share and those of the lines after it.
function areasOf(given) {
  // A first point alone stands for all that was before it.
  const isAlone = given.lines[0]?.x.length === 1 && given.lines[0].x[0] > 0;
  const spec = isAlone ? { ...given, lines: given.lines.map((line) => ({ ...line, x: [0, ...line.x], y: [line.y[0], ...line.y] })) } : given;
  const x = spec.lines[0]?.x ?? [];
  const sums = x.map((_, k) => (spec.lines[0].y[k] === null ? null : 0));
  const data = spec.lines.map((line) => line.y).reverse()
    .map((shares) => shares.map((part, k) => (part === null || sums[k] === null ? null : (sums[k] += part)))).reverse();
  const series = spec.lines.map((line) => ({
    label: line.name,
    width: 0,
    fill: shade(line.colour),
    stroke: shade(line.colour),
    points: { show: false },
    value: (u, value, place, k) => (line.format ?? format)(k === null ? null : line.y[k]),
  }));
  return { data: [x, ...data], series, bands: [] };
}

function axesOf(spec) {
  const common = { stroke: shade(FAINT), font: FONT, grid: { stroke: shade(GRID), width: 1 }, ticks: { show: false } };
  const width = (u, texts) => 12 + LETTER_PX * Math.max(3, ...(texts ?? []).map((text) => text.length));
  const x = {
    ...common, size: 20, gap: 4, space: 60, labelFont: FONT, labelSize: 16, labelGap: 0,
    label: spec.xLabel ?? "steps",
    values: (u, ticks, axis, space, step) => (spec.xTicks ? spec.xTicks(ticks, step) : formatTicks(ticks, step)),
  };
  if (spec.rows) {
    const every = (u) => Math.max(1, Math.ceil((13 * spec.rows.length) / (u.bbox.height / devicePixelRatio)));
    return [{ ...x, grid: { show: false } }, {
      ...common, size: width, gap: 4, grid: { show: false },
      splits: (u) => spec.rows.map((_, row) => row + 0.5).filter((_, row) => row % every(u) === 0),
      values: (u, ticks) => ticks.map((tick) => shortened(spec.rows[Math.floor(tick)], 18)),
    }];
  }
  return [x, {
    ...common, size: width, space: 26, gap: 4,
    values: (u, ticks, axis, space, step) => formatTicks(ticks, step, u.scales.y.distr === 3),
  }];
}

function paintMarks(u, marks) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const mark of marks) {
    const x = Math.round(u.valToPos(mark.x, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = shade(mark.colour ?? FAINT);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function paintGuides(u, guides) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  for (const guide of guides) {
    const y = Math.round(u.valToPos(guide.y, "y", true));
    if (y < bbox.top || y > bbox.top + bbox.height) continue;
    ctx.strokeStyle = shade(guide.colour ?? FAINT);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  ctx.restore();
}

// Events near the cursor, beside it. Names come from runs, so they are only ever set as text.
let tip = null;
function showTip(u, marks) {
  const { left, event: mouse } = u.cursor;
  const isHere = left >= 0 && (!mouse || u.over.contains(mouse.target));
  if (!isHere && !u.showsTip) return;
  const near = isHere ? marks.filter((mark) => mark.text && Math.abs(u.valToPos(mark.x, "x") - left) <= 5) : [];
  u.showsTip = near.length > 0;
  if (!tip) document.body.append((tip = h("div", { id: "tip" })));
  tip.hidden = !u.showsTip;
  if (tip.hidden) return;
  tip.replaceChildren(...near.slice(0, 6).map((mark) => h("div", { style: { borderColor: shade(mark.colour ?? FAINT) } }, mark.text)));
  const area = u.over.getBoundingClientRect();
  const x = Math.min(area.left + left + 12, document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(8, x) + scrollX}px`;
  tip.style.top = `${area.top + scrollY + 8}px`;
}

function paintHeat(u, spec) {
  const [low, high] = spec.ends;
  const picture = new OffscreenCanvas(spec.x.length, spec.rows.length);
  const pixels = new ImageData(spec.x.length, spec.rows.length);
  spec.grid.forEach((row, at) => row.forEach((value, k) => {
    if (value !== null) pixels.data.set([...scaleRgb((value - low) / (high - low || 1)), 255], 4 * (at * spec.x.length + k));
  }));
  picture.getContext("2d").putImageData(pixels, 0, 0);
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  u.ctx.clip();
  u.ctx.imageSmoothingEnabled = false;
  // Columns may be of different widths: episodes and seconds do not pass evenly.
  for (let k = 0; k < spec.x.length; k++) {
    const [start, end] = [spec.x[k], spec.x[k + 1] ?? spec.xEnd].map((x) => u.valToPos(x, "x", true));
    u.ctx.drawImage(picture, k, 0, 1, spec.rows.length, Math.floor(start), u.bbox.top, Math.ceil(end) - Math.floor(start), u.bbox.height);
  }
  u.ctx.restore();
}

function cellAt(u, spec) {
  const x = u.posToVal(u.cursor.left, "x");
  const row = Math.floor((u.cursor.top / u.over.clientHeight) * spec.rows.length);
  const column = spec.x.findLastIndex((start) => start <= x);
  const value = spec.grid[row]?.[column];
  return value === undefined ? "" : `${spec.rows[row]}: ${(spec.format ?? format)(value)}`;
}

function heatKey(spec) {
  const stops = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((k) => `rgb(${scaleRgb(k / 8)})`);
  const value = h("b");
  const scale = h("i", { style: { background: `linear-gradient(to right,${stops})` } });
  return { value, line: h("p", { class: "scale" }, h("span", {}, (spec.format ?? format)(spec.ends[0])), scale, h("span", {}, (spec.format ?? format)(spec.ends[1])), value) };
}

function make(element, kind, spec) {
  const group = spec.group;
  let cell = null;
  const isHeat = kind === "heat";
  const y = isHeat ? { range: [0, spec.rows.length], dir: -1 } : kind === "areas" ? { range: [0, 1] } : yAxisOf(spec);
  const { data, series, bands } = isHeat
    ? { data: [[spec.x[0] ?? 0, spec.xEnd], [null, null]], series: [{ show: false }], bands: [] }
    : kind === "areas" ? areasOf(spec) : linesOf(spec, y);
  const xs = data[0];
  const [first, last] = spec.xRange ?? [xs[0] ?? 0, xs.at(-1) ?? 1];
  const [begin, end] = first < last ? [first, last] : [first - 1, first + 1];
  const marks = spec.marks ?? [];
  const u = new uPlot({
    width: element.clientWidth || 320,
    height: spec.height ?? 210,
    padding: [8, 14, 0, 0],
    legend: { show: !isHeat && spec.legend !== false, markers: { width: 0, fill: (self, k) => self.series[k].stroke() } },
    cursor: {
      y: false,
      sync: group ? { key: group.key } : undefined,
      hover: { prox: 40, skip: [undefined] },
      points: { show: kind === "lines", size: 6 },
    },
    scales: { x: { time: false, range: (self, low, high) => (low === null || (low <= (xs[0] ?? low) && high >= (xs.at(-1) ?? high)) ? [begin, end] : [low, high]) }, y },
    series: [{ label: spec.xLabel ?? "steps", value: (self, x) => (x === null ? "\u2013" : (spec.xFormat ?? ((v) => format(Math.round(v))))(x)) }, ...series],
    bands,
    axes: axesOf(spec),
    hooks: {
      draw: [(self) => { if (isHeat) paintHeat(self, spec); paintGuides(self, spec.guides ?? []); paintMarks(self, marks); }],
      setCursor: [(self) => { element.classList.toggle("pointed", self.cursor.left >= 0); showTip(self, marks); if (cell) cell.textContent = self.cursor.left >= 0 ? cellAt(self, spec) : ""; }],
      setScale: [(self, key) => {
        if (key !== "x" || !group || !self.isReady || group.isMoving) return;
        const { min, max } = self.scales.x;
        const zoom = min <= begin && max >= end ? null : [min, max];
        if (String(zoom) !== String(group.zoom)) group.moveTo(zoom);
      }],
    },
  }, data, element);
  if (isHeat) {
    const key = heatKey(spec);
    cell = key.value;
    element.append(key.line);
  }
  // uPlot draws after this task; until then its scales are not the reader's doing.
  u.isReady = false;
  queueMicrotask(() => queueMicrotask(() => { u.isReady = true; }));
  u.showAll = () => u.setScale("x", { min: begin, max: end });
  return u;
}

function chart(element, kind, spec) {
  let [u, shown, width] = [null, spec, 0];
  const handle = {
    element,
    get plot() { return u; },
    update(next = shown) {
      shown = next;
      const hidden = u ? u.series.filter((s) => s.show === false && s.class !== "band-end").map((s) => s.label) : [];
      u?.destroy();
      element.replaceChildren();
      u = make(element, kind, shown);
      width = element.clientWidth;
      u.series.forEach((s, k) => { if (k && hidden.includes(s.label)) u.setSeries(k, { show: false }); });
      if (shown.group?.zoom) handle.moveTo(shown.group.zoom);
    },
    moveTo(zoom) {
      if (!u) return;
      const before = u.isReady;
      u.isReady = false;
      if (zoom) u.setScale("x", { min: zoom[0], max: zoom[1] });
      else u.showAll();
      queueMicrotask(() => { u.isReady = before || true; });
    },
    destroy() {
      sizes.disconnect();
      shown.group?.charts.delete(handle);
      u?.destroy();
      if (tip) tip.hidden = true;
    },
  };
  const sizes = new ResizeObserver(() => {
    if (element.clientWidth && element.clientWidth !== width) {
      width = element.clientWidth;
      u?.setSize({ width, height: shown.height ?? 210 });
    }
  });
  element.classList.add("chart");
  element.chart = handle;
  handle.update(spec);
  spec.group?.charts.add(handle);
  sizes.observe(element);
  return handle;
}

// spec: lines [{ name, colour, x, y, low?, high?, dash?, points?, isStepped?, format? }], group?, xLabel?, xFormat?,
//   xTicks?, xRange?, yRange?, log?, marks? [{ x, text, colour? }], guides? [{ y, colour? }], height?, legend?
export const lineChart = (element, spec) => chart(element, "lines", spec);

// As lineChart; every y is a share of the whole at its x, and all lines have the same x.
export const areaChart = (element, spec) => chart(element, "areas", spec);

// spec: rows (names), x (start of each column), xEnd, grid (a row of numbers or nulls per name), ends [low, high],
//   format?, and what lineChart takes besides lines
export const heatMap = (element, spec) => chart(element, "heat", { ...spec, height: spec.height ?? 42 + Math.min(Math.max(120, 14 * spec.rows.length), 520) });
