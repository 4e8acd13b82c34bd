// Compare: runs that the reader chooses, real ones beside simulated ones; what differs in their settings.
import { lineChart } from "./charts.js";
import { runColour, runDash, shade } from "./colours.js";
import { choice, debounced, h } from "./dom.js";
import { MISSING, share } from "./numbers.js";
import { onSetting } from "./settings.js";
import { banded } from "./several.js";
import { link, problem } from "./shell.js";
import { ask } from "./source.js";

const [MOST_RUNS, FEW] = [40, 8];
const WHOLE = "all";
const REFRESH_MS = 1000;

const folderOf = (name) => name.split("/").slice(0, -1).join("/");
const wordsOf = (names) => String(new URLSearchParams(names.map((name) => ["run", name])));

async function show(main, params) {
  const rows = (await ask("overview")).runs.filter((row) => !row.problem);
  const known = new Map(rows.map((row) => [row.name, row]));
  let chosen = new URLSearchParams(params.runs ?? "").getAll("run").filter((name) => known.has(name)).slice(0, MOST_RUNS);
  let [isBand, isShare, label, turn] = [params.show === "bands", params.x === "share", params.label ?? WHOLE, 0];
  const place = h("div", { class: "chart" });
  let chart = null;
  const note = h("p", { class: "note" });
  const labels = h("select", { "aria-label": "group of tasks", onchange: () => { label = labels.value; keep(); draw(); } });
  const legend = h("div", { class: "run-legend" });
  const table = h("div", { class: "wide" });
  const more = h("p");
  let judged = new Map();

  const boxes = rows.map((row) => h("label", { class: "pick" },
    h("input", { type: "checkbox", value: row.name, checked: chosen.includes(row.name), onchange: (event) => {
      chosen = event.target.checked ? [...chosen, row.name].slice(0, MOST_RUNS) : chosen.filter((name) => name !== row.name);
      choose();
    } }), h("span", {}, row.name, h("small", {}, ` ${row.kind}${row.curriculum ? `, ${row.curriculum}` : ""}`))));
  const filter = h("input", { type: "search", class: "find", placeholder: "filter runs", "aria-label": "filter runs", oninput: () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    boxes.forEach((box, k) => { box.hidden = !words.every((word) => `${rows[k].name} ${rows[k].kind} ${rows[k].curriculum}`.toLowerCase().includes(word)); });
  } });
  const all = (isOn) => () => {
    const seen = boxes.filter((box) => !box.hidden).map((box) => box.querySelector("input"));
    for (const box of seen) box.checked = isOn;
    chosen = isOn ? [...new Set([...chosen, ...seen.map((box) => box.value)])].slice(0, MOST_RUNS) : chosen.filter((name) => !seen.some((box) => box.value === name));
    choose();
  };
  main.append(h("h1", {}, "Compare"),
    rows.length ? h("details", { class: "card", open: !chosen.length }, h("summary", {}, "Choose runs"), filter,
      h("p", {}, h("button", { type: "button", class: "more", onclick: all(true) }, "all that are seen"), " ", h("button", { type: "button", class: "more", onclick: all(false) }, "none")),
      h("div", { class: "picks" }, boxes)) : h("p", { class: "nothing" }, "There is no run to compare yet."),
    h("div", { class: "stack" },
      h("figure", {},
        h("figcaption", {}, "What they are judged by ", labels,
          choice("runs as", [[false, "lines"], [true, "seeds as bands"]], isBand, (value) => { isBand = value; keep(); draw(); }),
          choice("x axis", [[false, "steps"], [true, "share of the run"]], isShare, (value) => { isShare = value; keep(); draw(); })),
        note, place, legend),
      h("figure", {}, h("figcaption", {}, "Settings that differ"), table), more));
  const charted = main.querySelector(".stack figure");

  function keep() {
    const words = { runs: wordsOf(chosen), ...(isBand ? { show: "bands" } : {}), ...(isShare ? { x: "share" } : {}), ...(label === WHOLE ? {} : { label }) };
    history.replaceState(null, "", link("compare", words));
  }

  function draw() {
    const having = chosen.filter((name) => judged.get(name)?.curves.some((curve) => curve.name === label && curve.x.length));
    const curves = having.map((name) => {
      const curve = judged.get(name).curves.find((one) => one.name === label);
      const end = curve.x.at(-1) || 1;
      return { ...curve, run: name, isSimulated: judged.get(name).kind === "simulation", x: isShare ? curve.x.map((x) => x / end) : curve.x };
    });
    const groups = new Map();
    for (const curve of curves) {
      const key = isBand ? folderOf(curve.run) || curve.run : curve.run;
      groups.set(key, [...(groups.get(key) ?? []), curve]);
    }
    const lines = [...groups].map(([name, members], index) => {
      const [first] = members;
      const look = { colour: runColour(index), dash: first.isSimulated ? [5, 4] : runDash(index), width: 2, format: share };
      if (members.length > 1) return { ...banded(members), ...look, name: `${name} (${members.length})` };
      const isMeasured = !first.isSimulated && first.low;
      return { ...look, name: first.run, x: first.x, y: first.y, low: isMeasured ? first.low : undefined, high: isMeasured ? first.high : undefined, points: first.x.length === 1 };
    });
    const figures = [...new Set(having.map((name) => judged.get(name).figure).filter(Boolean))];
    const without = chosen.filter((name) => !having.includes(name));
    note.textContent = [figures.join("; "), having.some((name) => judged.get(name).kind === "simulation") ? "simulated runs are dashed" : "",
      without.length ? `nothing of ${label} was measured in ${without.join(", ")}` : ""].filter(Boolean).join(". ");
    legend.replaceChildren(...(lines.length <= FEW ? [] : lines).map((line) => h("span", {}, h("i", { class: "dot", style: { background: shade(line.colour) } }), line.name)));
    charted.hidden = !chosen.length;
    const isShareOfGames = lines.every((line) => [line.y, line.high ?? []].flat().every((y) => y === null || y === undefined || (y >= 0 && y <= 1)));
    const spec = { lines, height: 300, yRange: isShareOfGames ? [0, 1.02] : undefined, legend: lines.length <= FEW, xLabel: isShare ? "share of the run" : "steps", xRange: [0, Math.max(0, ...lines.map((line) => line.x.at(-1) ?? 0)) || 1], xFormat: isShare ? share : undefined };
    if (chart) chart.update(spec);
    else chart = lineChart(place, spec);
  }

  async function load() {
    const mine = ++turn;
    try {
      const found = await Promise.all(chosen.map(async (name) => [name, await ask("judged", { run: name })]));
      const told = chosen.length > 1 ? await ask("difference", { runs: wordsOf(chosen) }) : null;
      if (mine !== turn) return;
      judged = new Map(found);
      const names = [...new Set(found.flatMap(([, { curves }]) => curves.map((curve) => curve.name)))];
      if (!names.includes(label)) label = names[0] ?? WHOLE;
      labels.replaceChildren(...names.map((name) => h("option", { value: name }, name === WHOLE ? "everything" : name)));
      labels.value = label;
      draw();
      table.replaceChildren(told === null ? h("p", { class: "nothing" }, rows.length ? "Choose two runs or more above." : "") : told.rows.length ? h("table", { class: "settings differing" },
        h("thead", {}, h("tr", {}, ["setting", ...told.names].map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, told.rows.map(({ setting, values }) => h("tr", {}, h("th", { scope: "row" }, setting), values.map((value) => h("td", {}, value ?? MISSING)))))) : h("p", { class: "nothing" }, "All their settings are the same."),
      told === null ? "" : h("p", { class: "note" }, `${told.num_same} settings are the same${told.num_left_out ? `; ${told.num_left_out} more that differ are not shown` : ""}`));
      more.replaceChildren(chosen.length ? h("a", { href: link("several", { runs: wordsOf(chosen) }) }, "all their metrics in the same charts") : "");
    } catch (error) {
      if (mine === turn) table.replaceChildren(problem(error));
    }
  }

  function choose() {
    keep();
    return load();
  }
  await load();
  const stopListening = onSetting((name) => { if (name === "theme") draw(); });
  const refresh = debounced(load, REFRESH_MS);
  return {
    refresh: (names) => { if (chosen.some((name) => names.has(name))) refresh(); },
    close: () => { turn = Infinity; stopListening(); chart?.destroy(); },
  };
}

export const page = { title: "Compare", show };
