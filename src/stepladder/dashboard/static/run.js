// The page of one run: what happened and why, told from the top.
import { lineChart, Group } from "./charts.js";
import { runColour } from "./colours.js";
import { h } from "./dom.js";
import { ask } from "./source.js";

async function show(main, { run }) {
  main.append(h("h1", {}, run));
  const group = new Group();
  const metrics = (await ask("metrics", { run })).filter((metric) => metric.varies);
  const figures = h("div", { class: "figures" });
  main.append(figures);
  const charts = [];
  for (const { name } of metrics.slice(0, 12)) {
    const place = h("div");
    figures.append(h("figure", {}, h("figcaption", {}, name), place));
    const curve = await ask("series", { run, name });
    charts.push(lineChart(place, { lines: [{ ...curve, colour: runColour(0) }], group }));
  }
  return { close: () => charts.forEach((chart) => chart.destroy()) };
}

export const page = { title: "Run", show };
