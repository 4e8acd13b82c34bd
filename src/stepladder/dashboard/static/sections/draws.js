// What was practised when: a heat map of draws by label or task, and what is practised now and why.
import { heatMap } from "../charts.js";
import { shade } from "../colours.js";
import { choice, debounced, h } from "../dom.js";
import { format, MISSING, share } from "../numbers.js";
import { isFrozen } from "../source.js";

const percent = (value) => (value === null ? MISSING : value === 0 ? "0 %" : value < 0.0005 ? "< 0.1 %" : `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)} %`);

const MOST_BARS = 12;

export function draws(context) {
  const place = h("div");
  const note = h("p", { class: "note" }, "share of the episodes that began with a task of each label");
  let by = context.labels.length > 1 ? "label" : "task";
  const options = [["label", "labels"], ["task", "tasks"]];
  const element = h("figure", { class: "whole" },
    h("figcaption", {}, "What was practised when ", choice("rows", options, by, (value) => { by = value; update(); })), note, place);
  let chart = null;
  async function update() {
    const answer = await context.ask("draws", by === "task" ? { by } : {});
    note.textContent = by === "task" ? "probability of the tasks that were drawn most, as the tables of tasks have it" : "share of the episodes that were played, by label";
    if (!answer.rows.length || !answer.x.length) {
      chart?.destroy();
      chart = null;
      place.replaceChildren(h("p", { class: "nothing" }, by === "task" ? "no table of tasks yet; one is kept every ten epochs" : "nothing has been practised yet"));
      return;
    }
    // A single task is practised all the time.
    element.hidden = by === "task" && answer.rows.length === 1 && context.labels.length < 2;
    const top = Math.max(...answer.grid.flat().filter((value) => value !== null), 1e-9);
    const spec = {
      ...context.chartSpec(),
      rows: answer.rows,
      x: context.axis.places(answer.x),
      xEnd: context.axis.place(answer.end),
      grid: answer.grid,
      ends: [0, top],
      format: percent,
    };
    chart = context.draw(chart, heatMap, place, spec);
  }
  return { element, update };
}

export function practice(context) {
  const bars = h("div", { class: "bars" });
  const table = h("div", { class: "wide" });
  const said = h("pre", { class: "said" });
  const note = h("span", { class: "note" });
  const search = h("input", { type: "search", placeholder: "find a task", "aria-label": "find a task", oninput: debounced(() => list(), 250) });
  const element = h("figure", { class: "whole practice" },
    h("figcaption", {}, "Practised now, and why ", note), bars,
    h("details", {}, h("summary", {}, "Tasks, the likeliest first"), isFrozen ? null : search, table),
    h("details", {}, h("summary", {}, "What the curriculum says, in full"), said));
  let answer = null;

  function bar({ label, share: part, success, reason, num_tasks: count }, top) {
    return h("div", { class: "bar-row" },
      h("span", { class: "name" }, h("i", { class: "dot", style: { background: shade(context.colour(label)) } }), label),
      h("span", { class: "amount" }, h("i", { style: { width: `${Math.max(0.5, (100 * part) / (top || 1))}%`, background: shade(context.colour(label)) } }), h("b", {}, percent(part))),
      h("span", { class: "reason" }, reason ?? "", h("small", {}, `${format(count)} task${count === 1 ? "" : "s"}${success === null ? "" : `, success ${share(success)} over all its episodes`}`)));
  }
  function row(task) {
    return h("tr", {}, h("th", { scope: "row" }, task.task), h("td", {}, task.label), h("td", { class: "num" }, percent(task.prob)),
      h("td", { class: "num" }, share(task.success)), h("td", { class: "num" }, format(task.samples)), h("td", { class: "why" }, task.reason ?? MISSING));
  }
  function fill(tasks, found) {
    table.replaceChildren(
      h("table", {}, h("thead", {}, h("tr", {}, ["task", "label", "drawn", "success", "episodes", "why"].map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, tasks.map(row))),
      h("p", { class: "note" }, `${format(Math.min(found, tasks.length))} of ${format(found)} tasks`));
  }
  async function list() {
    const find = search.value.trim();
    const part = find ? await context.ask("practice", { find, tasks: 50 }) : answer;
    fill(part.tasks, part.num_found);
  }
  async function update() {
    answer = await context.ask("practice");
    const text = context.story?.said ?? "";
    element.hidden = !answer.num_tasks && !text;
    note.textContent = answer.step === null ? "" : `as of step ${format(answer.step)}, ${format(answer.num_tasks)} task${answer.num_tasks === 1 ? "" : "s"}`;
    // The likeliest, in the one order of labels: rows do not change places while a run is watched.
    const rank = (label) => context.labels.indexOf(label.label);
    const shown = answer.labels.slice(0, MOST_BARS).sort((a, b) => rank(a) - rank(b));
    const top = Math.max(...shown.map((label) => label.share));
    bars.replaceChildren(...shown.map((label) => bar(label, top)),
      answer.labels.length > shown.length ? h("p", { class: "note" }, `and ${format(answer.labels.length - shown.length)} more labels that are drawn less`) : "");
    if (search.value.trim()) await list();
    else fill(answer.tasks, answer.num_found);
    said.textContent = text;
    said.parentElement.hidden = !text;
  }
  return { element, update };
}
