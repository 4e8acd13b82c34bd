// What some runs have besides: films, opponents, where the time went, settings.
import { areaChart, lineChart } from "../charts.js";
import { runColour } from "../colours.js";
import { lines } from "../curves.js";
import { h } from "../dom.js";
import { format, share } from "../numbers.js";
import { filmAddress } from "../source.js";

export function films(context) {
  const list = h("div", { class: "films" });
  const element = h("figure", { class: "whole" }, h("figcaption", {}, "Films"), list);
  let known = "";
  async function update() {
    const found = await context.ask("films");
    element.hidden = !found.length;
    const now = JSON.stringify(found);
    if (now === known) return;
    known = now;
    list.replaceChildren(...found.map((film) => {
      const source = filmAddress(context.run, film.name);
      const text = film.step === null ? film.name : `step ${format(film.step)}`;
      const picture = film.type === "video/mp4"
        ? h("video", { src: source, controls: true, loop: true, muted: true, playsinline: true, preload: "metadata" })
        : h("img", { src: source, alt: `film of the run, ${text}`, loading: "lazy" });
      return h("div", { class: "film" }, picture, h("small", { title: film.name }, text));
    }));
  }
  return { element, update };
}

// A figure of several metrics that begin alike.
function ofMetrics(context, title, words, prefix, { make = lineChart, look = (lines) => lines, spec: more = {} } = {}) {
  const place = h("div");
  const element = h("figure", {}, h("figcaption", {}, title, " ", h("span", { class: "note" }, words)), place);
  let chart = null;
  async function update() {
    const names = context.metrics.map((metric) => metric.name).filter((name) => (Array.isArray(prefix) ? prefix.includes(name) : name.startsWith(prefix)));
    element.hidden = !names.length;
    if (!names.length) return;
    const curves = await Promise.all(names.map((name) => context.ask("series", { name })));
    const short = (name) => (Array.isArray(prefix) ? name.split("/").at(-1).replace("_seconds", "") : name.slice(prefix.length));
    const drawn = look(curves.map((curve) => ({ ...curve, low: null, high: null, name: short(curve.name) })));
    const spec = { ...context.chartSpec(), ...more, byName: undefined, lines: drawn.flatMap((curve, k) => lines(curve, context.axis, { colour: more.byName ? context.colour(curve.name) : runColour(k), format: more.format, isMeasured: make === areaChart })) };
    chart = context.draw(chart, make, place, spec);
  }
  return { element, update };
}

const TIMES = ["throughput/env_seconds", "throughput/act_seconds", "throughput/learn_seconds"];

// Each epoch's seconds as shares of their sum.
function asShares(curves) {
  const totals = curves[0].y.map((_, k) => curves.reduce((sum, curve) => sum + (curve.y[k] ?? 0), 0));
  return curves.map((curve) => ({ ...curve, x: curves[0].x, y: totals.map((total, k) => (total > 0 ? (curve.y[k] ?? 0) / total : null)) }));
}

export const timeSplit = (context) => ofMetrics(context, "Where the time goes", "stepping envs, choosing actions, learning; without evaluations", TIMES, { make: areaChart, look: asShares, spec: { format: share } });
export const speed = (context) => ofMetrics(context, "Speed", "env steps per second", ["overview/steps_per_second"]);
export const rating = (context) => ofMetrics(context, "Rating", "of the learner among the archive's agents, cautiously (mu \u2212 3 sigma)", ["env_opponents/rating"]);
export const opponentsWon = (context) => ofMetrics(context, "Games won against opponents", "by kind of opponent", "env_opponents/won/", { spec: { yRange: [0, 1.02], format: share, byName: true } });

export function runSettings(context) {
  const body = h("div", { class: "wide" });
  const element = h("figure", { class: "whole" }, h("details", {}, h("summary", {}, "Settings"), body));
  let isThere = false;
  async function update() {
    if (isThere) return;
    const { settings, ...about } = await context.ask("settings");
    const rows = Object.entries({ ...about, ...settings });
    body.replaceChildren(h("table", { class: "settings" }, h("tbody", {}, rows.map(([name, value]) =>
      h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value === null ? "\u2013" : String(value)))))));
    isThere = true;
  }
  return { element, update };
}
