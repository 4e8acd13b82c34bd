// Draws panels with uPlot: lines, stacked areas and heat maps over agent steps.
// Gets the plain data that charts.py describes, and how to view it; knows nothing of the page around it.
const charts = (() => {
  "use strict";
  // Each colour has a shade for light and one for dark ground. Told apart with the common colour
  // vision deficiencies: neighbours differ in lightness as well.
  const RUNS = [
    ["#0068a8", "#4aa8e8"],
    ["#d55e00", "#ff8a3d"],
    ["#00876a", "#2fc99f"],
    ["#b5468b", "#e48bc0"],
    ["#c98a00", "#f0b93a"],
    ["#3c3c46", "#d6d6de"],
    ["#4fa6d8", "#9ad6ff"],
    ["#7a2e1d", "#d98f78"],
    ["#6a4fb3", "#ab97f0"],
    ["#7d8a1c", "#c3d24e"],
  ];
  const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3]];
  // Lightness rises along the scale, so it stays ordered in grey print.
  const SCALE = [
    [27, 32, 98],
    [36, 92, 146],
    [38, 146, 148],
    [112, 190, 112],
    [228, 216, 82],
  ];
  const FAINT = ["#667080", "#98a2b0"];
  const GRID = ["#e4e8ed", "#2a303a"];
  const FONT = "11px system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif";
  const LETTER_PX = 6;
  const UNITS = [
    [1e12, "T"],
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "K"],
  ];

  function scaleRgb(position) {
    const place = Math.min(Math.max(position, 0), 1) * (SCALE.length - 1);
    const left = Math.min(Math.floor(place), SCALE.length - 2);
    return SCALE[left].map((low, k) => Math.round(low + (SCALE[left + 1][k] - low) * (place - left)));
  }

  const runColour = (index) => RUNS[index % RUNS.length];
  const runDash = (index) => DASHES[Math.floor(index / RUNS.length) % DASHES.length];

  // The palest part of the scale is left out on light ground, the darkest on dark ground.
  function labelColour(rank, count) {
    const place = count > 1 ? rank / (count - 1) : 0;
    return [0.02 + 0.86 * place, 0.28 + 0.72 * place].map((position) => `rgb(${scaleRgb(position)})`);
  }

  const colourOf = (line) =>
    line.rank === undefined ? runColour(line.run) : labelColour(line.rank, line.of);

  const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });

  function format(value) {
    if (value === null || value === undefined) return "\u2013";
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
    return String(Number(value.toPrecision(4)));
  }

  const isExtreme = (size) => size !== 0 && (size < 1e-3 || size >= 1e15);

  // Ticks of one axis share unit and decimals; those of a log axis have a decade each.
  function formatTicks(ticks, step, isLog) {
    const alone = (tick) =>
      tick === null
        ? ""
        : isExtreme(Math.abs(tick))
          ? String(Number(tick.toPrecision(3)).toExponential())
          : Math.abs(tick) >= 1e4
            ? short.format(tick)
            : String(Number(tick.toPrecision(6)));
    const largest = Math.max(...ticks.map(Math.abs));
    if (isLog || isExtreme(largest)) return ticks.map(alone);
    const [unit, suffix] = UNITS.find(([size]) => largest >= Math.max(size, 1e4)) ?? [1, ""];
    const decimals = Math.min(Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9)), 8);
    return ticks.map((tick) => (tick / unit).toFixed(decimals) + (tick ? suffix : ""));
  }

  function shortened(text, longest) {
    if (text.length <= longest) return text;
    const tail = Math.floor(longest / 2);
    return `${text.slice(0, longest - tail - 1)}\u2026${text.slice(-tail)}`;
  }

  // The ends of a y axis that shows all values. It starts at 0 where they come near it, so that
  // heights can be compared.
  function linearRange(values) {
    const low = values.reduce((a, b) => Math.min(a, b), Infinity);
    const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
    if (high - low <= 1e-12 * Math.max(Math.abs(low), Math.abs(high)))
      return low === 0 ? [0, 1] : low > 0 ? [0, 2 * low] : [2 * low, 0];
    const margin = 0.04 * (high - low);
    return [
      low >= 0 && low <= 0.3 * high ? 0 : low - margin,
      high <= 0 && high >= 0.3 * low ? 0 : high + margin,
    ];
  }

  function logRange(values) {
    const low = values.reduce((a, b) => Math.min(a, b), Infinity);
    const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
    const margin = high / low < 1.01 ? 2 : (high / low) ** 0.04;
    return [low / margin, high * margin];
  }

  // Panels of one figure share their y axis, so that they can be compared. Where no value is above 0,
  // it stays linear.
  function yAxisOf(panels, view) {
    const values = panels.flatMap((panel) => panel.lines.flatMap((line) => line.y)).filter((y) => y !== null);
    const positive = view.y === "log" ? values.filter((y) => y > 0) : [];
    return positive.length
      ? { distr: 3, range: logRange(positive) }
      : { distr: 1, range: linearRange(values) };
  }

  // Points without neighbours are drawn as dots; others only where points are far apart.
  const isolated = (u, series, shown) => {
    if (shown) return null;
    const known = [...u.data[series].keys()].filter((k) => u.data[series][k] !== undefined);
    return known.filter((k, place) =>
      [place - 1, place, place + 1].every(
        (p) => ((u.data[series][known[p]] ?? null) !== null) === (p === place),
      ),
    );
  };

  function linesOf(panel, scale, axis, view, shade) {
    const isLog = axis.distr === 3;
    const tables = panel.lines.map((line) => [
      line.x.map((x) => x / scale(line.run)),
      isLog ? line.y.map((y) => (y > 0 ? y : null)) : line.y,
    ]);
    const series = panel.lines.map((line) => ({
      label: line.name,
      show: !view.away.has(line.run),
      width: 1.5,
      stroke: shade(colourOf(line)),
      dash: line.rank === undefined ? runDash(line.run) : [],
      value: (u, value) => format(value),
      points: { filter: isolated, size: 4, space: 25, fill: shade(colourOf(line)) },
    }));
    return { data: uPlot.join(tables), series };
  }

  // Each area reaches from 0 to the sum of its share and those of the labels after it; later areas
  // cover earlier ones.
  function areasOf(panel, scale, shade) {
    const sums = panel.x.map((_, k) => (panel.lines[0].y[k] === null ? null : 0));
    const data = panel.lines
      .map((line) => line.y)
      .reverse()
      .map((shares) => shares.map((share, k) => (share === null ? null : (sums[k] += share))))
      .reverse();
    const series = panel.lines.map((line) => ({
      label: line.name,
      width: 0,
      fill: shade(colourOf(line)),
      stroke: shade(colourOf(line)),
      points: { show: false },
      value: (u, value, place, k) => format(k === null ? null : line.y[k]),
    }));
    return { data: [panel.x.map((x) => x / scale(panel.runs[0])), ...data], series };
  }

  function paintHeat(u, panel, scale) {
    const [low, high] = panel.ends;
    const [rows, columns] = [panel.grid.length, panel.grid[0].length];
    const picture = new OffscreenCanvas(columns, rows);
    const pixels = new ImageData(columns, rows);
    panel.grid.flat().forEach((value, k) => {
      if (value !== null) pixels.data.set([...scaleRgb((value - low) / (high - low || 1)), 255], 4 * k);
    });
    picture.getContext("2d").putImageData(pixels, 0, 0);
    const [start, end] = [panel.first, panel.end].map((step) =>
      u.valToPos(step / scale(panel.runs[0]), "x", true),
    );
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    u.ctx.clip();
    u.ctx.imageSmoothingEnabled = false;
    u.ctx.drawImage(picture, start, u.bbox.top, end - start, u.bbox.height);
    u.ctx.restore();
  }

  function heatKey(element, panel) {
    const key = element.appendChild(document.createElement("p"));
    key.className = "scale";
    const add = (tag, text) =>
      Object.assign(key.appendChild(document.createElement(tag)), { textContent: text });
    add("span", format(panel.ends[0]));
    const stops = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((k) => `rgb(${scaleRgb(k / 8)})`);
    add("i", "").style.background = `linear-gradient(to right,${stops})`;
    add("span", format(panel.ends[1]));
    return add("b", "");
  }

  function cellAt(u, panel, scale) {
    const step = u.posToVal(u.cursor.left, "x") * scale(panel.runs[0]);
    const row = Math.floor((u.cursor.top / u.over.clientHeight) * panel.rows.length);
    const column = Math.floor(((step - panel.first) / (panel.end - panel.first)) * panel.grid[0].length);
    const value = panel.grid[row]?.[Math.min(column, panel.grid[0].length - 1)];
    return value === undefined ? "" : `${panel.rows[row]}: ${format(value)}`;
  }

  const marksOf = (panel, runs, view) =>
    !view.events
      ? []
      : panel.runs
          .filter((run) => !view.away.has(run))
          .flatMap((run) => runs[run].events.map((event) => ({ run, event })));

  function paintMarks(u, panel, marks, scale, shade) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([2 * devicePixelRatio, 2 * devicePixelRatio]);
    ctx.globalAlpha = panel.kind === "lines" ? 0.55 : 0.8;
    for (const { run, event } of marks) {
      const x = Math.round(u.valToPos(event[0] / scale(run), "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.strokeStyle = panel.kind === "lines" ? shade(runColour(run)) : "#fff";
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  // Events near the cursor, beside it. Names come from runs, so they are only ever set as text.
  const tip = Object.assign(document.createElement("div"), { id: "tip", hidden: true });

  function showTip(u, marks, scale, shade) {
    const { left, event: mouse } = u.cursor;
    const isHere = left >= 0 && (!mouse || u.over.contains(mouse.target));
    const near = isHere
      ? marks.filter(({ run, event }) => Math.abs(u.valToPos(event[0] / scale(run), "x") - left) <= 4)
      : [];
    if (!isHere && !u.showsTip) return;
    u.showsTip = near.length > 0;
    tip.hidden = !u.showsTip;
    tip.replaceChildren(
      ...near.slice(0, 6).map(({ run, event: [step, kind, text] }) => {
        const line = Object.assign(document.createElement("div"), {
          textContent: `${step.toLocaleString("en")} ${kind}: ${text}`,
        });
        line.style.borderColor = shade(runColour(run));
        return line;
      }),
    );
    if (tip.hidden) return;
    const area = u.over.getBoundingClientRect();
    const x = Math.min(area.left + left + 12, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, x) + scrollX}px`;
    tip.style.top = `${area.top + scrollY + 8}px`;
  }

  function axesOf(panel, view, shade) {
    const common = {
      stroke: shade(FAINT),
      font: FONT,
      grid: { stroke: shade(GRID), width: 1 },
      ticks: { show: false },
    };
    const x = {
      ...common,
      size: 20,
      gap: 4,
      labelFont: FONT,
      labelSize: 16,
      labelGap: 0,
      space: 60,
      label: view.x === "fraction" ? "fraction of the run" : "agent steps",
      values: (u, ticks, axis, space, step) => formatTicks(ticks, step),
    };
    const width = (u, texts) => 12 + LETTER_PX * Math.max(3, ...(texts ?? []).map((text) => text.length));
    if (panel.kind !== "heat")
      return [
        x,
        {
          ...common,
          size: width,
          space: 26,
          gap: 4,
          values: (u, ticks, axis, space, step) => formatTicks(ticks, step, u.scales.y.distr === 3),
        },
      ];
    const count = panel.rows.length;
    // As many names as have room.
    const every = (u) => Math.max(1, Math.ceil((12 * count) / (u.bbox.height / devicePixelRatio)));
    const splits = (u) => panel.rows.map((_, row) => row + 0.5).filter((_, row) => row % every(u) === 0);
    const names = (u, ticks) => ticks.map((tick) => shortened(panel.rows[Math.floor(tick)], 18));
    return [
      { ...x, grid: { show: false } },
      { ...common, size: width, gap: 4, grid: { show: false }, splits, values: names },
    ];
  }

  // Draws one panel into an element.
  //   panels: all panels of its figure
  //   runs: name, last step and events of each run
  //   view: x ("steps" or "fraction"), y ("linear" or "log"), away (numbers of hidden runs),
  //     events and dark (true or false)
  function draw(element, panel, panels, runs, view, width) {
    const shade = (pair) => pair[view.dark ? 1 : 0];
    // Agent steps share one axis; as a fraction, each run fills it.
    const scale = (run) => (view.x === "fraction" ? runs[run].last : 1);
    const end = view.x === "fraction" ? 1 : panel.last;
    const isHeat = panel.kind === "heat";
    const marks = marksOf(panel, runs, view);
    const y = isHeat
      ? { range: [0, panel.rows.length], dir: -1 }
      : panel.kind === "areas"
        ? { range: [0, 1] }
        : yAxisOf(panels, view);
    const { data, series } = isHeat
      ? {
          data: [
            [0, end],
            [null, null],
          ],
          series: [{ show: false }],
        }
      : panel.kind === "areas"
        ? areasOf(panel, scale, shade)
        : linesOf(panel, scale, y, view, shade);
    const [first, last] = [data[0][0], data[0][data[0].length - 1]];
    const step = (u, x) =>
      x === null
        ? "\u2013"
        : view.x === "fraction"
          ? `${(100 * x).toFixed(1)} %`
          : Math.round(x).toLocaleString("en");
    element.replaceChildren();
    let cell = null;
    const chart = new uPlot(
      {
        width,
        height: isHeat ? 42 + Math.min(Math.max(190, 8 * panel.rows.length), 520) : 210,
        padding: [8, 14, 0, 0],
        legend: { show: !isHeat, markers: { width: 0, fill: (u, k) => u.series[k].stroke() } },
        cursor: {
          y: false,
          sync: { key: "stepladder" },
          hover: { prox: 40, skip: [undefined] },
          points: { show: panel.kind === "lines", size: 6 },
        },
        scales: {
          x: {
            time: false,
            range: (u, low, high) =>
              low === null || (low <= first && high >= last) ? [0, end] : [low, high],
          },
          y,
        },
        series: [{ label: view.x === "fraction" ? "run" : "step", value: step }, ...series],
        axes: axesOf(panel, view, shade),
        hooks: {
          draw: [
            (u) => {
              if (isHeat) paintHeat(u, panel, scale);
              paintMarks(u, panel, marks, scale, shade);
            },
          ],
          setCursor: [
            (u) => {
              showTip(u, marks, scale, shade);
              if (cell) cell.textContent = u.cursor.left >= 0 ? cellAt(u, panel, scale) : "";
            },
          ],
        },
      },
      data,
      element,
    );
    if (isHeat) cell = heatKey(element, panel);
    return chart;
  }

  return { draw, runColour, runDash, labelColour, scaleRgb, tip, format, formatTicks, linearRange, logRange };
})();
