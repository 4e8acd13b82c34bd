// How good the run is, over its course: held-out success with intervals, and success by label.
import { lineChart } from "../charts.js";
import { FAINT, TOTAL } from "../colours.js";
import { lines } from "../curves.js";
import { h } from "../dom.js";
import { share } from "../numbers.js";
import { settings } from "../settings.js";

const WHOLE = "all";
const MOST_LINES = 30;

export function heldOut(context) {
  const place = h("div");
  const note = h("p", { class: "note" });
  const table = h("div", { class: "wide" });
  const element = h("figure", { class: "lead" }, h("figcaption", {}, "Held-out success"), note, place,
    h("details", {}, h("summary", {}, "The last evaluation in figures"), table));
  let chart = null;
  async function update() {
    const answer = await context.ask("held-out");
    element.hidden = !answer.curves.length;
    if (element.hidden) return;
    const isReturn = answer.figure.includes("return");
    element.querySelector("figcaption").textContent = isReturn ? "Held-out return" : "Held-out success";
    const random = answer.random[WHOLE];
    note.textContent = `${answer.figure}, ${answer.own === "best" ? "best actions" : "drawn actions"}, with intervals of 95 %${random === undefined || random === null ? "" : `; dashed: random play (${share(random)})`}`;
    const shown = answer.curves.filter((curve) => curve.y.some((y) => y !== null)).slice(0, MOST_LINES);
    const spec = {
      ...context.chartSpec(),
      lines: shown.flatMap((curve) => lines(
        curve.name === WHOLE ? curve : { ...curve, low: null, high: null },
        context.axis,
        { colour: curve.name === WHOLE ? TOTAL : context.colour(curve.name), width: curve.name === WHOLE ? 2.5 : 1.5, points: curve.x.length < 60, isMeasured: true, format: share },
      )),
      yRange: isReturn ? undefined : [0, 1.02],
      log: settings.log,
      guides: random === undefined || random === null ? [] : [{ y: random, colour: FAINT }],
      height: 260,
    };
    chart = context.draw(chart, lineChart, place, spec);
    table.replaceChildren(figures(answer));
  }
  return { element, update };
}

function figures(answer) {
  const ways = Object.keys(answer.ways);
  const names = [...new Set(ways.flatMap((way) => Object.keys(answer.ways[way])))];
  const cell = (ends) => h("td", { class: "num" }, share(ends?.[0]), ends && ends[1] !== null ? h("small", {}, `${share(ends[1])} to ${share(ends[2])}`) : null);
  return h("table", { class: "figures-table" },
    h("thead", {}, h("tr", {}, h("th"), ways.map((way) => h("th", { scope: "col" }, way === answer.own ? `${way} (its own way)` : way)))),
    h("tbody", {}, names.map((name) => h("tr", {}, h("th", { scope: "row" }, name), ways.map((way) => cell(answer.ways[way][name]))))));
}

const TITLES = {
  success: ["Success in training", "of the episodes that were played, by label"],
  performance: ["Skill", "the learner's hidden chance of success, by label"],
  held_out_performance: ["Held-out skill", "success on unseen tasks, by label"],
};

export function byLabel(context, of) {
  const [title, words] = TITLES[of];
  const place = h("div");
  const element = h("figure", { class: "lead" }, h("figcaption", {}, title, " ", h("span", { class: "note" }, words)), place);
  let chart = null;
  async function update() {
    const { curves } = await context.ask("family", { of });
    element.hidden = !curves.length;
    if (element.hidden) return;
    const needed = of === "success" ? context.story?.needed : null;
    const spec = {
      ...context.chartSpec(),
      lines: curves.slice(0, MOST_LINES).flatMap((curve) => lines({ ...curve, low: null, high: null }, context.axis, { colour: context.colour(curve.name), format: share })),
      yRange: [0, 1.02],
      log: settings.log,
      guides: needed ? [{ y: needed.at_least, colour: context.colour(needed.stage) }] : [],
      height: 260,
    };
    chart = context.draw(chart, lineChart, place, spec);
  }
  return { element, update };
}
