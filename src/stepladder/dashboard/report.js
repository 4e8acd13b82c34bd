// The page of a report: draws every panel, and again when a switch or the colour scheme changes.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("stepladder-data").textContent);
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const view = { x: data.x, y: "linear", away: new Set(), events: true, dark: dark.matches };
  const PRINTED_PX = 330;
  const places = [...document.querySelectorAll(".chart")];
  const shown = new Map();
  document.body.append(charts.tip);

  function redraw(width) {
    for (const [place, chart] of shown) {
      chart.destroy();
      shown.delete(place);
    }
    for (const panel of document.querySelectorAll(".panel[data-run]")) {
      panel.classList.toggle("away", view.away.has(Number(panel.dataset.run)));
    }
    for (const place of places) {
      const panel = data.plots[place.dataset.plot];
      const figure = Object.values(data.plots).filter((other) => other.figure === panel.figure);
      shown.set(place, charts.draw(place, panel, figure, data.runs, view, width ?? place.clientWidth));
    }
    for (const mark of document.querySelectorAll("[data-swatch]")) {
      const run = Number(mark.dataset.swatch);
      mark.setAttribute("stroke", charts.runColour(run)[view.dark ? 1 : 0]);
      mark.setAttribute("stroke-dasharray", charts.runDash(run).join(" "));
    }
    for (const button of document.querySelectorAll("[data-axis]"))
      press(button, view[button.dataset.axis] === button.dataset.choice);
  }

  const press = (button, on) => button.setAttribute("aria-pressed", String(on));
  const onClick = (selector, change) => {
    for (const button of document.querySelectorAll(selector)) {
      button.addEventListener("click", () => {
        change(button);
        redraw();
      });
    }
  };

  onClick("[data-axis]", ({ dataset }) => {
    view[dataset.axis] = dataset.choice;
  });
  onClick("[data-toggle]", (button) => {
    const run = Number(button.dataset.toggle);
    if (!view.away.delete(run)) view.away.add(run);
    press(button, !view.away.has(run));
  });
  onClick("[data-events]", (button) => {
    view.events = !view.events;
    press(button, view.events);
  });

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

  dark.addEventListener("change", () => {
    view.dark = dark.matches;
    redraw();
  });
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
    view.dark = false;
    redraw(PRINTED_PX);
  });
  addEventListener("afterprint", () => {
    view.dark = dark.matches;
    redraw();
  });

  redraw();
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const chart = shown.get(target);
      if (target.clientWidth && chart.width !== target.clientWidth)
        chart.setSize({ width: target.clientWidth, height: chart.height });
    }
  });
  places.forEach((place) => sizes.observe(place));
  root.dataset.ready = String(shown.size);
  root.charts = shown;
})();
