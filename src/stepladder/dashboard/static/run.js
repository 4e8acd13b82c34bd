// The page of one run: what happened and why, told from the top.
import { Axis, X_CHOICES } from "./axis.js";
import { Group } from "./charts.js";
import { labelColour, runColour } from "./colours.js";
import { choice, debounced, h } from "./dom.js";
import { byLabel, heldOut } from "./sections/course.js";
import { draws, practice } from "./sections/draws.js";
import { events } from "./sections/events.js";
import { head } from "./sections/head.js";
import { metrics } from "./sections/metrics.js";
import { films, opponentsWon, rating, runSettings, speed, timeSplit } from "./sections/more.js";
import { timeline } from "./sections/timeline.js";
import { onSetting, set, settings } from "./settings.js";
import { problem } from "./shell.js";
import { ask, isFrozen } from "./source.js";

const REFRESH_MS = 400;
const CURVES = ["series", "family"];

// What all sections of the page share: the run, its labels and their colours, the axis, the zoom.
class Context {
  constructor(run, onZoom) {
    this.run = run;
    this.group = new Group(onZoom);
    this.charts = new Set();
    this.others = [];
  }

  ask(question, params = {}) {
    return ask(question, { run: this.run, ...(CURVES.includes(question) ? this.zoomedSteps() : {}), ...params });
  }

  // The steps around what is zoomed in on, so that curves come with more points there.
  zoomedSteps() {
    const { zoom } = this.group;
    if (isFrozen || !zoom || this.axis.kind !== "steps") return {};
    const width = zoom[1] - zoom[0];
    return { first: Math.floor(Math.max(0, zoom[0] - width)), last: Math.ceil(zoom[1] + width) };
  }

  async load() {
    const [story, axes, known, marks, found] = await Promise.all(["story", "axes", "labels", "marks", "metrics"].map((question) => this.ask(question)));
    Object.assign(this, { story, axis: new Axis(axes), labels: known.labels, families: known.families, marks, metrics: found });
  }

  // The colour of a label, a stage or a group of an evaluation, the same in every chart.
  colour(name, rank = -1, count = 0) {
    const place = this.labels.indexOf(name);
    if (place >= 0) return labelColour(place, this.labels.length);
    if (rank >= 0) return labelColour(rank, count);
    // Names that are no labels, such as opponents: each has the next colour, from its first chart on.
    if (!this.others.includes(name)) this.others.push(name);
    return runColour(this.others.indexOf(name));
  }

  timeOf(step) {
    const { steps, seconds } = this.axis.known;
    const place = steps.findIndex((known) => known >= step);
    return place < 0 ? null : seconds[place];
  }

  chartSpec() {
    const marks = settings.hideEvents ? [] : this.marks.map((mark) => ({ x: this.axis.place(mark.step), text: `${mark.kind}: ${mark.text}` }));
    return { ...this.axis.spec, group: this.group, marks };
  }

  // Makes a chart, or updates the one that is there.
  draw(chart, make, place, spec) {
    if (chart) {
      chart.update(spec);
      return chart;
    }
    place.replaceChildren();
    const made = make(place, spec);
    this.charts.add(made);
    return made;
  }
}

function toolbar(context) {
  const smooth = h("input", { type: "range", min: 0, max: 20, step: 1, value: settings.smooth, "aria-label": "smoothing", oninput: debounced((event) => set("smooth", Number(event.target.value)), 60) });
  const reset = h("button", { type: "button", class: "more", "data-key": "0", hidden: true, onclick: () => context.group.moveTo(null) }, "show all");
  const element = h("nav", { class: "tools", "aria-label": "charts" },
    h("label", {}, "x ", choice("x axis", X_CHOICES, settings.x, (value) => set("x", value))),
    h("label", {}, "y ", choice("y axis", [[false, "linear"], [true, "log"]], settings.log, (value) => set("log", value))),
    h("label", {}, "smooth ", smooth),
    h("label", {}, h("input", { type: "checkbox", "data-key": "e", checked: !settings.hideEvents, onchange: (event) => set("hideEvents", !event.target.checked) }), " events"),
    reset,
    h("span", { class: "note hint" }, "drag across a chart to zoom, 0 shows all, e hides events, / searches metrics"));
  return { element, onZoom: (zoom) => { reset.hidden = zoom === null; } };
}

async function show(main, { run }) {
  const tools = {};
  let sections = [];
  const context = new Context(run, (zoom) => {
    tools.bar?.onZoom(zoom);
    for (const section of sections) section.onZoom?.(zoom);
    if (!isFrozen) refine();
  });
  const refine = debounced(() => updateAll(), REFRESH_MS);
  await context.load();
  tools.bar = toolbar(context);
  const lead = [heldOut(context), ...context.families.filter((of) => ["success", "performance", "held_out_performance"].includes(of)).map((of) => byLabel(context, of))];
  const story = [timeline(context), draws(context), practice(context), films(context)];
  const more = [...(context.story.kind === "simulation" ? [] : [speed(context), timeSplit(context)]), opponentsWon(context), rating(context)];
  const [first, all, log, config] = [head(context), metrics(context), events(context), runSettings(context)];
  sections = [first, ...lead, ...story, ...more, all, log, config];
  main.append(
    first.element, tools.bar.element,
    h("div", { class: "leads" }, lead.map((section) => section.element)),
    h("div", { class: "stack" }, story.map((section) => section.element)),
    h("div", { class: "figures" }, more.map((section) => section.element)),
    h("div", { class: "stack" }, [log, config].map((section) => section.element)),
    all.element);

  async function updateAll() {
    await Promise.all(sections.map(async (section) => {
      section.element.querySelector(":scope > .problem")?.remove();
      try {
        await section.update();
      } catch (error) {
        section.element.hidden = false;
        section.element.append(problem(error));
      }
    }));
  }
  await updateAll();
  let [isBusy, isDue, isGone] = [false, false, false];
  const refresh = debounced(async () => {
    if (isBusy) {
      isDue = true;
      return;
    }
    [isBusy, isDue] = [true, false];
    try {
      await context.load();
      if (!isGone) await updateAll();
    } catch (error) {
      console.warn(error.message);
    }
    isBusy = false;
    if (isDue && !isGone) refresh();
  }, REFRESH_MS);
  const stopListening = onSetting(() => {
    // Another axis has other places.
    if (context.group.zoom) context.group.moveTo(null);
    updateAll();
  });
  return {
    refresh: (names) => { if (names === null || names.has(run)) refresh(); },
    close() {
      isGone = true;
      stopListening();
      for (const section of sections) section.close?.();
      for (const chart of context.charts) chart.destroy();
    },
  };
}

export const page = { title: "Run", show };
