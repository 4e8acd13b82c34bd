// What came out: one sentence, when each was done, three charts, and how to repeat it.
import { areaChart, Group, lineChart } from "../charts.js";
import { FAINT, GOOD, labelColour, MAIN } from "../colours.js";
import { choice, h } from "../dom.js";
import { format, share } from "../numbers.js";

export const CURVES = ["chosen", "uniform", "oracle"];
const COLOURS = { chosen: MAIN, uniform: FAINT, oracle: GOOD };
const DASHES = { chosen: [], uniform: [6, 4], oracle: [2, 3] };

// Text that can be copied by a button; where that is forbidden, it can be selected.
function copied(title, text) {
  const button = h("button", { type: "button", class: "more", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "selected: copy it by hand";
    }
    setTimeout(() => { button.textContent = title; }, 1500);
  } }, title);
  const code = h("pre", { tabindex: "0", "aria-label": title }, text);
  return h("div", { class: "copied" }, button, code);
}

export class Result {
  constructor() {
    this.courses = {};
    this.seen = "chosen";
    this.group = new Group();
    this.near = new Group();
    this.charts = [];
    this.words = h("p", { class: "words", role: "status", "aria-live": "polite" });
    this.seedWords = h("p", { class: "seeds" });
    this.facts = h("div", { class: "facts" });
    this.spreads = {};
    this.problems = h("div", { role: "alert" });
    this.verdicts = h("ul", { class: "verdicts" });
    this.reasons = h("details", {}, h("summary", {}, "What the curriculum says of itself at the end"), h("pre", { class: "reasons" }));
    this.shared = h("div", { class: "shared" });
    this.places = { progress: h("div"), success: h("div"), draws: h("div") };
    this.whose = h("span");
    this.bandNote = h("span", { class: "note" });
    this.element = h("div", { class: "result" },
      this.problems, this.words, this.facts, this.seedWords,
      h("figure", { class: "main" }, h("figcaption", {}, "How much is learned, of all that can be ", this.bandNote), this.places.progress),
      h("div", { class: "figures" },
        h("figure", {}, h("figcaption", {}, "Success by group ", this.whose), this.places.success),
        h("figure", {}, h("figcaption", {}, "What is practised: share of the plays"), this.places.draws)),
      h("div", { class: "card" }, h("h3", {}, "In words"), this.verdicts, this.reasons),
      h("div", { class: "card" }, h("h3", {}, "Repeat it"), this.shared));
  }

  name(curve) {
    return curve === "chosen" ? this.chosen : curve;
  }

  begin(chosen) {
    this.chosen = chosen;
    this.problems.replaceChildren();
    this.spreads = {};
    this.element.classList.add("busy");
    const options = CURVES.map((curve) => [curve, this.name(curve)]);
    this.whose.replaceChildren(choice("whose", options, this.seen, (value) => { this.seen = value; this.draw(); }));
  }

  refuse(error) {
    this.element.classList.remove("busy");
    const lines = String(error.message).split(/\s{2,}|\n/).filter(Boolean);
    this.problems.replaceChildren(h("div", { class: "problem" }, lines.map((line) => h("div", {}, line))));
  }

  // What several seeds came to: bands behind the lines, which are those of the first seed.
  band({ spreads, words }) {
    this.spreads = spreads;
    this.seedWords.textContent = words.charAt(0).toUpperCase() + words.slice(1);
    this.draw();
  }

  add(curve, course, unit) {
    this.unit = unit;
    this.courses[curve] = course;
    this.draw();
  }

  end({ words, command, python }) {
    this.element.classList.remove("busy");
    this.words.textContent = words;
    this.shared.replaceChildren(copied("copy as command", command), copied("copy as Python", python),
      h("p", { class: "note" }, "Both play the same, bit for bit, with the first seed. stepladder compare measures over many."));
  }

  draw() {
    const known = CURVES.filter((curve) => this.courses[curve]);
    if (!known.length) return;
    const end = Math.max(...known.map((curve) => this.courses[curve].samples.at(-1)));
    const axis = { xLabel: this.unit, xRange: [0, end || 1], group: this.group, yRange: [0, 1.02] };
    this.facts.replaceChildren(...known.map((curve) => {
      const { done_at: done, progress, is_cut: isCut } = this.courses[curve];
      const text = done === null ? `not done: ${share(progress.at(-1))}${isCut ? ", cut short" : ""}` : `${format(done)} ${this.unit}`;
      return h("span", { style: { borderColor: `light-dark(${COLOURS[curve].join(",")})` } }, h("small", {}, this.name(curve)), text);
    }));
    const ends = (curve) => {
      const found = this.spreads[curve];
      return found && found.samples.length === this.courses[curve].samples.length ? { low: found.low, high: found.high } : {};
    };
    const most = Math.max(0, ...Object.values(this.spreads).map((found) => found.num_seeds));
    this.bandNote.textContent = most > 1 ? `line: the first seed; band: lowest to highest of ${most} seeds` : "";
    const lines = known.map((curve) => ({ ...ends(curve), name: this.name(curve), colour: COLOURS[curve], dash: DASHES[curve], width: curve === "chosen" ? 2.5 : 1.75, x: this.courses[curve].samples, y: this.courses[curve].progress, format: share }));
    const marks = known.filter((curve) => this.courses[curve].done_at !== null)
      .map((curve) => ({ x: this.courses[curve].done_at, colour: COLOURS[curve], text: `${this.name(curve)} is done: ${format(this.courses[curve].done_at)} ${this.unit}` }));
    this.put("progress", lineChart, { ...axis, lines, marks, height: 260 });
    const seen = this.courses[this.seen] ?? this.courses[known[0]];
    // Where everything is learned, nothing happens any more.
    const until = seen.done_at ? Math.min(end, 1.6 * seen.done_at) : end;
    const near = { ...axis, group: this.near, xRange: [0, until || 1] };
    const groups = (rows) => rows.map((y, rank) => ({ name: seen.groups[rank], colour: labelColour(rank, rows.length), x: seen.samples, y, format: share }));
    this.put("success", lineChart, { ...near, lines: groups(seen.success) });
    // The first point has no plays before it.
    this.put("draws", areaChart, { ...near, lines: groups(seen.draws.map((row) => [row[1] ?? 0, ...row.slice(1)])) });
    this.verdicts.replaceChildren(...known.map((curve) => h("li", {}, h("b", {}, this.name(curve)), `: ${this.courses[curve].verdict}`)));
    const reasons = this.courses.chosen?.reasons ?? [];
    this.reasons.hidden = !reasons.length;
    this.reasons.querySelector("pre").textContent = reasons.join("\n");
  }

  put(name, make, spec) {
    const place = this.places[name];
    if (place.chart) place.chart.update(spec);
    else this.charts.push(make(place, spec));
  }

  close() {
    for (const chart of this.charts) chart.destroy();
  }
}

export const unitOf = (measure) => measure.split(" until ")[0];
