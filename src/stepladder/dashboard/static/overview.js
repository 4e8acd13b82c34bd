// The overview: one row per run, live.
import { h } from "./dom.js";
import { clock, duration, MISSING, share, short } from "./numbers.js";
import { ask, isFrozen } from "./source.js";
import { link } from "./shell.js";
import { statusMark } from "./status.js";

const SILENT_MS = 20000;
const SPARK = { width: 96, height: 24 };

function sparkline(curve) {
  const known = curve ? curve.x.map((x, k) => [x, curve.y[k]]).filter(([, y]) => y !== null) : [];
  if (known.length < 2) return null;
  const [first, last] = [known[0][0], known.at(-1)[0]];
  const ys = known.map(([, y]) => y);
  const isShare = Math.min(...ys) >= 0 && Math.max(...ys) <= 1;
  const [low, high] = isShare ? [0, 1] : [Math.min(...ys), Math.max(...ys)];
  const at = ([x, y]) => `${(1 + ((SPARK.width - 2) * (x - first)) / (last - first || 1)).toFixed(1)} ${(SPARK.height - 2 - ((SPARK.height - 4) * (y - low)) / (high - low || 1)).toFixed(1)}`;
  return h("svg", { class: "spark", viewBox: `0 0 ${SPARK.width} ${SPARK.height}`, role: "img", "aria-label": `${curve.name} from ${share(ys[0])} to ${share(ys.at(-1))}` },
    h("title", {}, curve.name), h("path", { d: `M${known.map(at).join("L")}` }));
}

function placeOf({ place }) {
  if (!place) return MISSING;
  const of = place.count ? ` of ${place.count}` : "";
  return h("span", {}, h("b", {}, place.name || `${place.kind} ${place.index + 1}`), h("small", {}, `${place.kind} ${place.index + 1}${of}`));
}

// What a held-out figure is, where it is not a success: 232 is a return.
export const kindOf = (measured) => (measured.figure.includes("return") ? "return" : "");

function heldOut({ held_out: measured, success }) {
  if (measured && measured.value !== null) {
    const ends = measured.low === null ? "" : `${share(measured.low)} to ${share(measured.high)}`;
    return h("span", { title: measured.figure }, h("b", {}, share(measured.value)), h("small", {}, [kindOf(measured), ends].filter(Boolean).join(" ")));
  }
  return success === null ? MISSING : h("span", { title: "success in training; there was no evaluation yet" }, share(success), h("small", {}, "in training"));
}

function progress(run) {
  const done = run.budget ? Math.min(1, run.step / run.budget) : null;
  return h("span", {}, short(run.step), run.budget ? h("small", {}, ` of ${short(run.budget)}`) : null,
    done === null ? null : h("span", { class: "bar", "aria-hidden": "true" }, h("i", { style: { width: `${100 * done}%` } })));
}

function row(run) {
  const name = h("th", { scope: "row" }, h("a", { href: link("run", { run: run.name }) }, run.name),
    h("small", {}, run.problem ? null : [run.subject, run.curriculum].filter(Boolean).join(", ")));
  if (run.problem)
    return h("tr", { class: "broken" }, name, h("td", {}, h("span", { class: "status crashed" }, "unreadable")), h("td", { colspan: 7, class: "why" }, run.problem));
  return h("tr", {},
    name,
    h("td", { "data-head": "status" }, statusMark(run), run.status === "crashed" || run.status === "stale" ? h("small", { class: "why" }, run.detail) : null),
    h("td", { "data-head": "steps", class: "num" }, progress(run)),
    h("td", { "data-head": "steps/s", class: "num" }, short(run.steps_per_second && Math.round(run.steps_per_second))),
    h("td", { "data-head": "where" }, placeOf(run)),
    h("td", { "data-head": "held-out", class: "num" }, heldOut(run)),
    h("td", { "data-head": "curve" }, sparkline(run.spark)),
    h("td", { "data-head": "time left", class: "num" }, run.status === "running" ? duration(run.seconds_left) : h("span", { title: `took ${duration(run.seconds)}` }, MISSING)),
    h("td", { "data-head": "last change", class: "num" }, h("small", {}, clock(run.updated))));
}

// Runs of one folder stand together, such as the seeds of a training; the others stand alone.
function groupsOf(runs) {
  const folderOf = (run) => run.name.split("/").slice(0, -1).join("/");
  const counts = new Map();
  for (const run of runs) counts.set(folderOf(run), (counts.get(folderOf(run)) ?? 0) + 1);
  const groups = [];
  for (const run of runs) {
    const folder = counts.get(folderOf(run)) > 1 ? folderOf(run) : "";
    const known = folder && groups.find(([name]) => name === folder);
    if (known) known[1].push(run);
    else groups.push([folder, [run]]);
  }
  for (const [folder, members] of groups) if (folder) members.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  return groups;
}

// One figure for runs that differ in their seed alone; of others a mean would say nothing.
function together(members) {
  const measured = members.map((run) => run.held_out).filter((one) => typeof one?.value === "number");
  const kinds = new Set(members.map((run) => JSON.stringify([run.kind, run.subject, run.curriculum, run.budget, run.held_out?.figure])));
  if (measured.length < 2 || kinds.size > 1) return null;
  const values = measured.map((one) => one.value);
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return h("small", {}, `held-out ${kindOf(measured[0])} ${share(mean)} in the mean, from ${share(Math.min(...values))} to ${share(Math.max(...values))}`.replace("  ", " "));
}

function groupRow(group, members) {
  return h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: 9 }, group, " ", h("a", { href: link("several", { group }) }, `${members.length} runs in the same charts`), together(members)));
}

const ORDER = { running: 0, stale: 1 };

// Of one folder that is a run or a sweep, an address without a page means this run or sweep.
let isFirst = true;

async function show(main) {
  const list = h("div", { class: "wide" });
  main.append(h("h1", {}, "Runs"), list);
  async function refresh() {
    const { runs, folders, num_sweeps: numSweeps, opens } = await ask("overview");
    if (opens && isFirst && !isFrozen && /^#?\/?$/.test(location.hash)) {
      isFirst = false;
      location.replace(opens.page === "run" ? link("run", { run: opens.name }) : link("sweeps", { sweep: opens.name }));
      return;
    }
    runs.sort((a, b) => (ORDER[a.status] ?? 2) - (ORDER[b.status] ?? 2) || (b.updated ?? 0) - (a.updated ?? 0));
    if (!runs.length) {
      list.replaceChildren(h("p", { class: "nothing" }, `There are no runs in ${folders.join(", ")} yet. `,
        numSweeps ? h("a", { href: link("sweeps") }, `${numSweeps} sweep${numSweeps === 1 ? "" : "s"}`) : "One that begins appears here: stepladder train"));
      return;
    }
    const heads = ["run", "status", "steps", "steps/s", "where", "held-out", "curve", "time left", "last change"];
    list.replaceChildren(h("table", { class: "runs" },
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, groupsOf(runs).flatMap(([group, members]) => [group === "" ? null : groupRow(group, members), ...members.map(row)]))));
  }
  await refresh();
  // A run that has fallen silent makes no news.
  const timer = isFrozen ? 0 : setInterval(() => { if (!document.hidden) refresh(); }, SILENT_MS);
  return { refresh, close: () => clearInterval(timer) };
}

export const page = { title: "Runs", show };
