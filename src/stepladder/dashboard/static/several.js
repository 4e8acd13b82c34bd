// Several runs in the same charts: overlaid, or as one band, such as the seeds of one training.
import { Axis, X_CHOICES } from "./axis.js";
import { Group, lineChart } from "./charts.js";
import { runColour, runDash, shade } from "./colours.js";
import { lines } from "./curves.js";
import { choice, debounced, drawnWhenSeen, h } from "./dom.js";
import { share } from "./numbers.js";
import { kindOf } from "./overview.js";
import { onSetting, set, settings } from "./settings.js";
import { link, problem } from "./shell.js";
import { ask } from "./source.js";
import { statusMark } from "./status.js";

const MOST_RUNS = 40;
const GRID_POINTS = 200;
const FIRST = ["evaluation/success", "evaluation/win_rate", "evaluation/return", "overview/held_out_success", "overview/mastered_fraction", "env_info/curriculum_success", "overview/reward", "env_curriculum_stats/stage", "env_curriculum_stats/phase", "overview/steps_per_second"];
const FEW = 8;
const REFRESH_MS = 800;

// The value of a curve at x, in proportion between its points; null outside of them.
function valueAt({ x, y }, at) {
  let right = x.findIndex((known) => known >= at);
  if (right < 0 || (right === 0 && x[0] > at)) return null;
  if (x[right] === at || right === 0) return y[right];
  const [a, b] = [y[right - 1], y[right]];
  return a === null || b === null ? null : a + ((b - a) * (at - x[right - 1])) / (x[right] - x[right - 1]);
}

// Runs with the same budget end some steps apart. So far beyond its ends a curve keeps its value, or
// the mean of the others would jump there.
const NEAR_END = 0.02;

// Mean, lowest and highest of several curves where at least half of them are known.
export function banded(curves) {
  const xs = curves.flatMap((curve) => curve.x);
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const x = [...Array(GRID_POINTS).keys()].map((k) => first + ((last - first) * k) / (GRID_POINTS - 1));
  const reach = NEAR_END * (last - first);
  const within = (curve, at) => {
    const [begin, end] = [curve.x[0], curve.x.at(-1)];
    return at < begin && begin - at <= reach ? begin : at > end && at - end <= reach ? end : at;
  };
  const columns = x.map((at) => curves.map((curve) => valueAt(curve, within(curve, at))).filter((value) => value !== null));
  const known = (values, reduce) => (values.length * 2 >= curves.length && values.length ? reduce(values) : null);
  return {
    x,
    y: columns.map((values) => known(values, (v) => v.reduce((a, b) => a + b, 0) / v.length)),
    low: columns.map((values) => known(values, (v) => Math.min(...v))),
    high: columns.map((values) => known(values, (v) => Math.max(...v))),
  };
}

function namesOf(params, all) {
  if (params.group !== undefined) return all.filter((name) => name.startsWith(`${params.group}/`));
  const wanted = new URLSearchParams(params.runs ?? "").getAll("run");
  return wanted.length ? all.filter((name) => wanted.includes(name)) : all;
}

// The settings in which runs differ, side by side.
async function differences(runs) {
  const all = await Promise.all(runs.map(async ({ name }) => (await ask("settings", { run: name })).settings));
  const names = [...new Set(all.flatMap(Object.keys))].filter((name) => new Set(all.map((one) => one[name])).size > 1);
  if (!names.length) return h("p", { class: "note" }, runs.length > 1 ? "All settings are the same." : null);
  return h("figure", { class: "whole" }, h("details", { open: names.length <= 20 }, h("summary", {}, `Settings that differ (${names.length})`), h("div", { class: "wide" },
    h("table", { class: "settings" },
      h("thead", {}, h("tr", {}, h("th"), runs.map((run) => h("th", { scope: "col" }, run.name)))),
      h("tbody", {}, names.map((name) => h("tr", {}, h("th", { scope: "row" }, name), all.map((one) => h("td", {}, one[name] ?? "\u2013")))))))));
}

async function show(main, params) {
  const rows = (await ask("overview")).runs;
  const runs = rows.filter((row) => !row.problem && namesOf(params, rows.map((each) => each.name)).includes(row.name)).slice(0, MOST_RUNS);
  const title = params.group ?? `${runs.length} runs`;
  if (!runs.length) {
    main.append(h("h1", {}, title), h("p", { class: "nothing" }, "No run of these can be read."));
    return {};
  }
  const group = new Group();
  const hidden = new Set();
  const figures = new Map();
  let isBand = params.group !== undefined;
  let known = [];

  const load = async () => {
    known = await Promise.all(runs.map(async ({ name }) => ({
      name,
      axis: new Axis(await ask("axes", { run: name })),
      metrics: new Map((await ask("metrics", { run: name })).map((metric) => [metric.name, metric])),
    })));
  };
  await load();

  const legend = h("div", { class: "run-legend" }, runs.map((run, index) => h("span", {},
    h("button", { type: "button", "aria-pressed": "true", onclick: (event) => { if (!hidden.delete(run.name)) hidden.add(run.name); event.currentTarget.setAttribute("aria-pressed", String(!hidden.has(run.name))); updateAll(); } },
      h("i", { class: "dot", style: { background: shade(runColour(index)) } }), run.name), h("a", { href: link("run", { run: run.name }), title: "open this run" }, "\u2197"), statusMark(run), run.held_out?.value === undefined || run.held_out === null ? null : h("small", {}, ["held-out", kindOf(run.held_out), share(run.held_out.value)].filter(Boolean).join(" ")))));
  const tools = h("nav", { class: "tools", "aria-label": "charts" },
    h("label", {}, "show ", choice("runs as", [[false, "lines"], [true, "mean and range"]], isBand, (value) => { isBand = value; updateAll(); })),
    h("label", {}, "x ", choice("x axis", X_CHOICES, settings.x, (value) => set("x", value))),
    h("label", {}, "y ", choice("y axis", [[false, "linear"], [true, "log"]], settings.log, (value) => set("log", value))),
    h("label", {}, "smooth ", h("input", { type: "range", min: 0, max: 20, value: settings.smooth, "aria-label": "smoothing", oninput: debounced((event) => set("smooth", Number(event.target.value)), 60) })));
  const search = h("input", { type: "search", class: "find", placeholder: "search metrics", "aria-label": "search metrics", "data-key": "/", oninput: debounced(() => choose(), 150) });
  const grid = h("div", { class: "figures" });
  const all = h("button", { type: "button", class: "more", onclick: () => { isOpen = true; choose(); } }, "show all");
  let isOpen = false;
  main.append(h("h1", {}, title), legend, tools, h("p", {}, search), grid, all, await differences(runs));

  const watcher = drawnWhenSeen((name) => figures.get(name), (entry) => draw(entry));

  async function draw(entry) {
    entry.isOld = false;
    try {
      const having = known.filter((run) => run.metrics.has(entry.name) && !hidden.has(run.name));
      const curves = await Promise.all(having.map((run) => ask("series", { run: run.name, name: entry.name })));
      const placed = curves.map((curve, k) => ({ ...curve, name: having[k].name, x: having[k].axis.places(curve.x) }));
      const colourAt = (name) => runs.findIndex((run) => run.name === name);
      const longest = having.length ? having.reduce((a, b) => (a.axis.end >= b.axis.end ? a : b)).axis : known[0].axis;
      const plain = { places: (x) => x };
      const drawn = isBand && placed.length > 1
        ? lines({ ...banded(placed), name: `mean of ${placed.length}` }, plain, { colour: runColour(0), width: 2.25 })
        : placed.flatMap((curve) => lines({ ...curve, low: null, high: null }, plain, { colour: runColour(colourAt(curve.name)), dash: runDash(colourAt(curve.name)) }));
      const spec = { ...longest.spec, group, log: settings.log, lines: drawn, height: 220, legend: drawn.length <= 12 };
      if (entry.chart) entry.chart.update(spec);
      else {
        entry.place.replaceChildren();
        entry.chart = lineChart(entry.place, spec);
      }
    } catch (error) {
      entry.place.replaceChildren(problem(error));
    }
  }

  function choose() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const varying = new Set(known.flatMap((run) => [...run.metrics.values()].filter((metric) => metric.varies || metric.first !== metric.last).map((metric) => metric.name)));
    const differing = [...new Set(known.flatMap((run) => [...run.metrics.keys()]))].filter((name) => name !== "metric/agent_step" && (varying.has(name) || FIRST.includes(name)));
    const ordered = [...FIRST.filter((name) => differing.includes(name)), ...differing.filter((name) => !FIRST.includes(name))];
    const chosen = ordered.filter((name) => words.every((word) => name.toLowerCase().includes(word)));
    const shown = isOpen || words.length ? chosen : chosen.slice(0, FEW);
    for (const name of shown)
      if (!figures.has(name)) {
        const place = h("div", { class: "chart" });
        const figure = h("figure", { "data-metric": name }, h("figcaption", {}, name), place);
        figures.set(name, { name, place, figure, chart: null, isOld: true, isSeen: false });
        grid.append(figure);
        watcher.observe(figure);
      }
    for (const [name, entry] of figures) entry.figure.hidden = !shown.includes(name);
    all.textContent = `show all ${chosen.length} metrics`;
    all.hidden = shown.length === chosen.length;
  }

  function updateAll() {
    for (const entry of figures.values()) {
      entry.isOld = true;
      if (entry.isSeen) draw(entry);
    }
  }
  choose();
  const stopListening = onSetting(updateAll);
  const refresh = debounced(async () => {
    await load();
    choose();
    updateAll();
  }, REFRESH_MS);
  return {
    refresh: (names) => { if (names === null || runs.some((run) => names.has(run.name))) refresh(); },
    close() {
      stopListening();
      watcher.disconnect();
      for (const entry of figures.values()) entry.chart?.destroy();
    },
  };
}

export const page = { title: "Several runs", show };
