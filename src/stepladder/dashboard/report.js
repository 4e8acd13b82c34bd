// Hover read-out, legend and switches of a report. Everything is already drawn; this only moves it.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("stepladder-data").textContent);
  const root = document.documentElement;
  const state = { x: "steps", y: "linear", away: new Set() };
  const MAX_ROWS = 14;

  const plots = [...document.querySelectorAll("svg.plot")].map((svg) => {
    const plot = data.plots[svg.dataset.plot];
    return Object.assign(plot, { svg, cursor: svg.querySelector(".cursor") });
  });

  // Agent steps share one axis; as a fraction, each run fills it.
  const lengthOf = (plot, run) => (state.x === "fraction" ? data.runs[run].last : plot.last);
  const toX = (plot, run, step) => plot.box[0] + (plot.box[2] * step) / lengthOf(plot, run);

  function toY(plot, value) {
    const log = state.y === "log" && plot.log;
    const [low, high] = (log ? plot.log : plot.y).map((v) => (log ? Math.log(v) : v));
    const place = ((log ? Math.log(value) : value) - low) / (high - low);
    return plot.box[1] + plot.box[3] * (1 - place);
  }

  const tenths = (value) => Number(value.toFixed(1));

  function pathOf(plot, line) {
    const log = state.y === "log" && plot.log;
    const gap = (y) => y === undefined || y === null || (log && y <= 0);
    let path = "";
    line.y.forEach((y, k) => {
      if (gap(y)) return;
      const begins = k === 0 || gap(line.y[k - 1]);
      path += `${begins ? "M" : "L"}${tenths(toX(plot, line.run, line.x[k]))} ${tenths(toY(plot, y))}`;
      if (begins && gap(line.y[k + 1])) path += "h0";
    });
    return path;
  }

  function redraw() {
    for (const plot of plots) {
      for (const mark of plot.svg.querySelectorAll(".event")) {
        const x = toX(plot, mark.dataset.run, data.runs[mark.dataset.run].events[mark.dataset.event][0]);
        mark.setAttribute("x1", tenths(x));
        mark.setAttribute("x2", tenths(x));
      }
      if (plot.kind !== "lines") continue;
      for (const path of plot.svg.querySelectorAll("[data-line]")) {
        path.setAttribute("d", pathOf(plot, plot.lines[path.dataset.line]));
      }
    }
  }

  const press = (button, on) => button.setAttribute("aria-pressed", String(on));

  for (const button of document.querySelectorAll("[data-axis]")) {
    button.addEventListener("click", () => {
      const { axis, choice } = button.dataset;
      state[axis] = choice;
      root.dataset[axis] = choice;
      for (const other of document.querySelectorAll(`[data-axis="${axis}"]`)) {
        press(other, other === button);
      }
      redraw();
    });
  }

  for (const button of document.querySelectorAll("[data-toggle]")) {
    button.addEventListener("click", () => {
      const run = Number(button.dataset.toggle);
      const away = !state.away.has(run);
      if (away) state.away.add(run);
      else state.away.delete(run);
      press(button, !away);
      for (const part of document.querySelectorAll(`.plots [data-run="${run}"]`)) {
        part.classList.toggle("away", away);
      }
    });
  }

  for (const button of document.querySelectorAll("nav [data-events]")) {
    button.addEventListener("click", () => {
      const off = root.dataset.events !== "off";
      root.dataset.events = off ? "off" : "on";
      press(button, !off);
    });
  }

  // The read-out. Names come from runs, so they are only ever set as text.
  const readout = document.body.appendChild(document.createElement("div"));
  readout.id = "readout";

  function row(text, value, style) {
    const line = readout.appendChild(document.createElement("div"));
    if (style) line.appendChild(document.createElement("i")).style.cssText = style;
    line.appendChild(document.createElement("span")).textContent = text;
    if (value !== undefined) line.appendChild(document.createElement("b")).textContent = value;
  }

  const write = (value) =>
    value === null || value === undefined ? "\u2013"
      : Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));

  function nearest(steps, step) {
    let low = 0;
    let high = steps.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle] < step) low = middle + 1;
      else high = middle;
    }
    return low > 0 && step - steps[low - 1] < steps[low] - step ? low - 1 : low;
  }

  function readLines(plot, place) {
    let shown = 0;
    let more = 0;
    for (const line of plot.lines) {
      if (state.away.has(line.run) || !line.x.length) continue;
      const length = lengthOf(plot, line.run);
      const k = nearest(line.x, place * length);
      // A run that ends earlier has nothing to say about what lies beyond its end.
      if (Math.abs(line.x[k] - place * length) > 0.05 * length && place * length > line.x[k]) continue;
      if (shown++ < MAX_ROWS) row(line.name, write(line.y[k]), line.style);
      else more++;
    }
    if (more) row(`and ${more} more`);
  }

  function readHeat(plot, place, height) {
    const label = Math.min(plot.rows.length - 1, Math.floor(height * plot.rows.length));
    const columns = plot.grid[label].length;
    const span = plot.end - plot.first || 1;
    const column = Math.floor(((place * plot.last - plot.first) / span) * columns);
    if (column < 0 || column > columns) return;
    row(plot.rows[label], write(plot.grid[label][Math.min(column, columns - 1)]));
  }

  function readEvents(plot, x) {
    let shown = 0;
    if (root.dataset.events === "off") return;
    for (const mark of plot.svg.querySelectorAll(".event:not(.away)")) {
      if (Math.abs(mark.getAttribute("x1") - x) > 3 || shown++ >= 4) continue;
      const [step, kind, text] = data.runs[mark.dataset.run].events[mark.dataset.event];
      row(`${step.toLocaleString("en")} ${kind}: ${text}`, undefined, mark.style.cssText);
    }
  }

  function hover(plot, event) {
    const area = plot.svg.getBoundingClientRect();
    const x = ((event.clientX - area.left) / area.width) * plot.svg.viewBox.baseVal.width;
    const y = ((event.clientY - area.top) / area.height) * plot.svg.viewBox.baseVal.height;
    const [left, top, width, height] = plot.box;
    const place = (x - left) / width;
    const rise = (y - top) / height;
    if (place < 0 || place > 1 || rise < 0 || rise > 1) return leave(plot);
    readout.replaceChildren();
    row(state.x === "fraction" ? `${(100 * place).toFixed(1)} % of the run` : `step ${Math.round(place * plot.last).toLocaleString("en")}`);
    if (plot.kind === "heat") readHeat(plot, place, rise);
    else readLines(plot, place);
    readEvents(plot, x);
    plot.cursor.setAttribute("d", `M${tenths(x)} ${top}v${height}`);
    readout.style.display = "block";
    const beside = event.pageX + 14 + readout.offsetWidth > root.clientWidth + window.scrollX;
    readout.style.left = `${beside ? event.pageX - 14 - readout.offsetWidth : event.pageX + 14}px`;
    readout.style.top = `${event.pageY + 12}px`;
  }

  function leave(plot) {
    plot.cursor.setAttribute("d", "");
    readout.style.display = "none";
  }

  for (const plot of plots) {
    plot.svg.addEventListener("pointermove", (event) => hover(plot, event));
    plot.svg.addEventListener("pointerleave", () => leave(plot));
  }

  // Tables of tasks: a click on a column sorts by it, a second click turns the order around.
  function sortBy(table, column, heading) {
    const up = heading.getAttribute("aria-sort") === "descending";
    const valueOf = (line) => {
      const cell = line.cells[column];
      if (!cell.classList.contains("num")) return cell.textContent;
      return cell.dataset.value === undefined ? -Infinity : Number(cell.dataset.value);
    };
    const compare = (a, b) =>
      typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a === b ? 0 : a - b;
    const body = table.tBodies[0];
    const lines = [...body.rows].sort((a, b) => (up ? 1 : -1) * compare(valueOf(a), valueOf(b)));
    body.append(...lines);
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => sortBy(table, column, heading));
    });
  }

  window.addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
  });

  if (data.x !== state.x) document.querySelector(`[data-choice="${data.x}"]`).click();
  root.dataset.ready = String(plots.length);
})();
