// Sweeps: all of them; or one, with its trials, what mattered, and the best.
import { MAIN } from "./colours.js";
import { debounced, h } from "./dom.js";
import { format, MISSING, share } from "./numbers.js";
import { parallel } from "./parallel.js";
import { asWords } from "./playground/question.js";
import { link } from "./shell.js";
import { ask } from "./source.js";

const MOST_ROWS = 100;
const REFRESH_MS = 1000;

const what = (sweep) => (sweep.is_training ? `training${sweep.training ? ` of ${sweep.training}` : ""}` : `${sweep.curriculum} on ${sweep.scenario}`);
const shown = (value) => (typeof value === "number" ? format(value) : value === undefined || value === null ? MISSING : Array.isArray(value) ? value.join(", ") || "none" : String(value));
const number = (value) => (typeof value === "number" ? Number(value.toPrecision(4)) : null);

async function showAll(main) {
  const list = h("div", { class: "wide" });
  main.append(h("h1", {}, "Sweeps"), list);
  const refresh = async () => {
    const rows = await ask("sweeps");
    if (!rows.length) {
      list.replaceChildren(h("p", { class: "nothing" }, "There is no sweep in these folders. Begin one: stepladder sweep. Sweeps are looked for in the folders runs and sweeps, or in those that are named: stepladder dashboard FOLDER"));
      return;
    }
    list.replaceChildren(h("table", { class: "runs" },
      h("thead", {}, h("tr", {}, ["sweep", "of", "trials", "seeds", "search", "best cost"].map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: link("sweeps", { sweep: row.name }) }, row.name)),
        row.problem ? h("td", { colspan: 5, class: "why" }, row.problem) : [
          h("td", { "data-head": "of" }, what(row)),
          h("td", { "data-head": "trials", class: "num" }, `${row.num_played} of ${row.num_trials}`),
          h("td", { "data-head": "seeds", class: "num" }, shown(row.num_seeds)),
          h("td", { "data-head": "search" }, shown(row.search)),
          h("td", { "data-head": "best cost", class: "num" }, shown(number(row.best)))])))));
  };
  await refresh();
  return { refresh: debounced(refresh, REFRESH_MS) };
}

function importance({ importance: found, measure }) {
  const rows = Object.entries(found);
  if (!rows.length) return h("p", { class: "note" }, "Too few trials have a result to say which parameters matter.");
  return [
    h("div", { class: "bars" }, rows.map(([name, value]) => h("div", { class: "bar-row plain" }, h("span", { class: "name" }, name),
      h("span", { class: "amount" }, h("i", { style: { width: `${100 * value}%`, background: `light-dark(${MAIN.join(",")})` } }), share(value))))),
    h("p", { class: "note" }, `Measure: ${measure}. It holds for the values that this sweep has tried.`)];
}

// Where a trial leads: to its runs, or to the playground with its values.
function leads(sweep, trial) {
  if (trial.group) return h("a", { href: link("several", { group: trial.group }) }, "runs");
  if (sweep.is_training || typeof sweep.scenario !== "string") return MISSING;
  const own = Object.entries(trial.params).filter(([name]) => !name.startsWith("simulation."));
  const part = (wanted) => Object.fromEntries(own.filter(([name]) => /^(dynamics|noise)\./.test(name) === wanted));
  const question = { scenario: trial.params["simulation.scenario"] ?? sweep.scenario, curriculum: sweep.curriculum, settings: part(false), learner: part(true), num_envs: trial.params["simulation.num_envs"] ?? sweep.num_envs };
  return h("a", { href: link("playground", asWords(question)) }, "play");
}

function measured({ cell, error }) {
  if (error) return h("span", { class: "why" }, error);
  if (!cell) return MISSING;
  if (cell.objective) return `${cell.objective} ${shown(number(cell.mean))}${cell.low === null ? "" : ` (${shown(number(cell.low))} to ${shown(number(cell.high))})`}`;
  return `${format(Math.round(cell.mean_samples))} samples (${format(Math.round(cell.low))} to ${format(Math.round(cell.high))}), ${number(cell.ratio_to_oracle)} times the oracle's${cell.finished_share < 1 ? `; ${share(cell.finished_share)} finished` : ""}`;
}

async function showOne(main, name) {
  const place = h("div", { class: "stack" });
  main.append(h("p", { class: "note" }, h("a", { href: link("sweeps") }, "all sweeps")), h("h1", {}, name), place);
  let before = "";
  const refresh = async () => {
    const sweep = await ask("sweep", { name });
    const now = JSON.stringify(sweep);
    if (now === before) return;
    before = now;
    const played = sweep.trials.filter((trial) => trial.cost !== null);
    const names = [...new Set(sweep.trials.flatMap((trial) => Object.keys(trial.params)))];
    const isLog = new Set(sweep.dimensions.filter((one) => one.log).map((one) => one.field));
    const cost = sweep.is_training ? "cost: minus the objective" : "cost: times the oracle's samples";
    const body = h("tbody");
    const rows = new Map();
    const fill = (kept) => {
      const chosen = played.filter((_, trial) => kept.has(trial)).slice(0, MOST_ROWS);
      rows.clear();
      body.replaceChildren(...chosen.map((trial) => {
        const at = played.indexOf(trial);
        const row = h("tr", { tabindex: "0", onpointerenter: () => chart.point(at), onpointerleave: () => chart.point(null), onfocus: () => chart.point(at), onblur: () => chart.point(null) },
          h("th", { scope: "row", class: "num" }, `#${trial.number}`), h("td", { class: "num" }, shown(number(trial.cost))),
          names.map((each) => h("td", { class: "num" }, shown(trial.params[each]))), h("td", {}, measured(trial.result)), h("td", {}, leads(sweep, trial)));
        rows.set(at, row);
        return row;
      }));
      count.textContent = `${kept.size} of ${played.length} trials with a result${kept.size > MOST_ROWS ? `; the best ${MOST_ROWS} are shown` : ""}`;
    };
    const count = h("p", { class: "note" });
    const columns = [...names.map((each) => ({ name: each, values: played.map((trial) => trial.params[each]), log: isLog.has(each) })), { name: "cost", isCost: true, values: played.map((trial) => trial.cost) }];
    const chart = parallel(columns, { onChoose: fill, onPoint: (trial) => { for (const [at, row] of rows) row.classList.toggle("pointed", at === trial); } });
    const failed = sweep.trials.filter((trial) => trial.cost === null && trial.result.error);
    const open = sweep.trials.length - played.length - failed.length;
    place.replaceChildren(
      h("p", { class: "lead" }, `${what(sweep)}: ${played.length} trials with a result${open ? `, ${open} without one yet` : ""}${failed.length ? `, ${failed.length} that could not be played` : ""}; ${shown(sweep.num_seeds)} seeds each.`),
      h("figure", {}, h("figcaption", {}, "Every trial: the stronger its line, the better"), h("p", { class: "note" }, "Drag along an axis to keep a part of it; click it to keep all."), played.length ? chart.element : h("p", { class: "nothing" }, "no trial has a result yet")),
      h("figure", {}, h("figcaption", {}, "Which parameters mattered"), importance(sweep)),
      h("figure", {}, h("figcaption", {}, "Best trials"), count,
        h("div", { class: "wide" }, h("table", { class: "trials" }, h("thead", {}, h("tr", {}, ["trial", cost, ...names, "measured", ""].map((head) => h("th", { scope: "col" }, head)))), body))),
      failed.length ? h("details", {}, h("summary", {}, `${failed.length} trials that could not be played`), h("ul", {}, failed.map((trial) => h("li", {}, `#${trial.number}: ${trial.result.error}`)))) : "");
    fill(new Set(played.keys()));
  };
  await refresh();
  return { refresh: debounced(refresh, REFRESH_MS) };
}

const show = (main, { sweep }) => (sweep === undefined ? showAll(main) : showOne(main, sweep));

export const page = { title: "Sweeps", show };
