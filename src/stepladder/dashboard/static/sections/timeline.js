// The course of stages or phases as a band, and every change with its reason.
import { shade } from "../colours.js";
import { h } from "../dom.js";
import { duration, format } from "../numbers.js";

const FEW = 5;
const VERBS = { stage_advanced: "advanced to", stage_demoted: "fell back to", stage_set: "set to", phase_changed: "moved on to" };

export function timeline(context) {
  const place = h("div");
  const element = h("figure", { class: "whole" }, h("figcaption", {}, "Stages"), place);
  let tracks = [];
  let showAll = false;

  function track({ of, within, names, segments, changes }) {
    const [first, last] = context.group.zoom ?? [0, context.axis.end || 1];
    const at = (step) => (100 * (context.axis.place(step) - first)) / (last - first || 1);
    const rank = (name) => Math.max(0, names.indexOf(name));
    const colour = (name) => shade(context.colour(name, rank(name), names.length));
    const band = h("div", { class: "band", role: "img", "aria-label": segments.map((s) => `${s.name} from ${format(s.start)}`).join(", ") },
      segments.map((segment) => {
        const [left, right] = [Math.max(0, at(segment.start)), Math.min(100, at(segment.end))];
        if (right <= left) return null;
        return h("span", { class: "segment", title: `${segment.name}: ${format(segment.start)} to ${format(segment.end)} steps`,
          style: { left: `${left}%`, width: `${right - left}%`, background: colour(segment.name) } }, right - left > 6 ? segment.name : null);
      }));
    const ladder = h("ol", { class: "ladder" }, names.map((name, k) => {
      const now = segments.at(-1)?.name;
      const state = name === now ? "now" : segments.some((s) => s.name === name) ? "been" : "ahead";
      return h("li", { class: state, style: { borderColor: colour(name) } }, `${k + 1} ${name}`);
    }));
    const seconds = (step) => context.timeOf(step);
    const latest = [...changes].reverse();
    const list = h("ol", { class: "changes" }, latest.slice(0, showAll ? undefined : FEW).map((change) =>
      h("li", { class: change.kind, style: { borderColor: colour(change.to) } },
        h("b", {}, `${VERBS[change.kind] ?? change.kind} ${change.to}`), " ",
        h("small", {}, `at ${format(change.step)} steps${seconds(change.step) === null ? "" : `, after ${duration(seconds(change.step))}`}`),
        h("p", {}, change.why || change.text))));
    const more = !showAll && latest.length > FEW
      ? h("button", { type: "button", class: "more", onclick: () => { showAll = true; draw(); } }, `all ${latest.length} changes`) : null;
    return h("div", { class: "track" }, tracks.length > 1 ? h("h3", {}, within ? `${of}s within ${within}` : `${of}s`) : null, ladder, band,
      latest.length ? list : h("p", { class: "note" }, `no ${of} has been left yet`), more);
  }

  function draw() {
    element.hidden = !tracks.length;
    if (tracks.length) element.querySelector("figcaption").textContent = tracks.length > 1 ? "Phases and stages" : tracks[0].of === "phase" ? "Phases" : "Stages";
    place.replaceChildren(...tracks.map(track));
  }
  async function update() {
    tracks = await context.ask("timeline");
    draw();
  }
  return { element, update, onZoom: draw };
}
