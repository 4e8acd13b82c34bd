// All other metrics: searchable, constant ones hidden, drawn when they come into view.
import { lineChart } from "../charts.js";
import { runColour } from "../colours.js";
import { lines } from "../curves.js";
import { debounced, drawnWhenSeen, h } from "../dom.js";
import { format } from "../numbers.js";
import { settings } from "../settings.js";

// Charts that are shown before a reader asks for more.
const FEW = 6;

export function metrics(context) {
  const figures = h("div", { class: "figures" });
  const note = h("span", { class: "note" });
  const constant = h("div", { class: "wide" });
  const search = h("input", { type: "search", class: "find", placeholder: "search metrics", "aria-label": "search metrics", "data-key": "/", oninput: debounced(() => choose(), 150) });
  const element = h("section", { class: "all-metrics" }, h("h2", {}, "All metrics ", note), h("p", {}, search), figures,
    h("details", {}, h("summary", {}, "Constant metrics"), constant));
  const everything = h("button", { type: "button", class: "more", onclick: () => { isOpen = true; choose(); } });
  element.insertBefore(everything, element.lastChild);
  const shown = new Map();
  let isOpen = false;

  const watcher = drawnWhenSeen((name) => shown.get(name), (entry) => draw(entry));

  async function draw(entry) {
    entry.isOld = false;
    try {
      const curve = await context.ask("series", { name: entry.name });
      const spec = { ...context.chartSpec(), log: settings.log, legend: false, height: 170, lines: lines(curve, context.axis, { colour: runColour(0) }) };
      entry.chart = context.draw(entry.chart, lineChart, entry.place, spec);
    } catch (error) {
      entry.place.replaceChildren(h("p", { class: "note" }, error.message));
    }
  }

  function choose() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const entry of shown.values()) {
      const fits = words.every((word) => entry.name.toLowerCase().includes(word));
      count += fits;
      entry.figure.hidden = !fits || (!isOpen && !words.length && count > FEW);
    }
    note.textContent = words.length ? `${count} of ${shown.size}` : `${shown.size}, constant ones left out`;
    everything.textContent = `show all ${shown.size}`;
    everything.hidden = isOpen || words.length > 0 || shown.size <= FEW;
  }

  function add({ name, last }) {
    const place = h("div", { class: "chart" });
    const value = h("b", {}, format(last));
    const figure = h("figure", { "data-metric": name }, h("figcaption", {}, name, " ", value), place);
    const entry = { name, place, figure, value, chart: null, isOld: true, isSeen: false };
    shown.set(name, entry);
    figures.append(figure);
    watcher.observe(figure);
  }

  async function update() {
    const varying = context.metrics.filter((metric) => metric.varies && metric.name !== "metric/agent_step");
    const still = context.metrics.filter((metric) => !metric.varies);
    for (const metric of varying) {
      const entry = shown.get(metric.name);
      if (!entry) add(metric);
      else {
        entry.value.textContent = format(metric.last);
        entry.isOld = true;
        if (entry.isSeen) draw(entry);
      }
    }
    constant.parentElement.hidden = !still.length;
    constant.previousElementSibling.textContent = `${still.length} metrics that never change`;
    constant.replaceChildren(h("table", { class: "settings" }, h("tbody", {}, still.map(({ name, last }) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "num" }, format(last)))))));
    choose();
    element.hidden = !context.metrics.length;
  }
  return { element, update, close: () => watcher.disconnect() };
}
