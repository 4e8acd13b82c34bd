// The head of a run's page: what it is, how far, and the headline in words.
import { h } from "../dom.js";
import { duration, short } from "../numbers.js";
import { statusMark } from "../status.js";

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export function head(context) {
  const element = h("section", { class: "head" });
  async function update() {
    const { story } = context;
    const run = story.standing;
    const done = run.budget ? Math.min(1, run.step / run.budget) : null;
    const fact = (name, value) => (value ? h("span", {}, h("small", {}, name), value) : null);
    element.replaceChildren(
      h("div", { class: "title" }, h("h1", {}, context.run), statusMark(run)),
      h("div", { class: "headline", "aria-live": "polite" }, story.headline.map((sentence, k) => h(k ? "p" : "h2", {}, capital(sentence)))),
      h("div", { class: "facts" },
        fact(story.kind, story.subject), fact("curriculum", story.curriculum),
        h("span", {}, h("small", {}, "steps"), short(run.step), run.budget ? ` of ${short(run.budget)}` : "", done === null ? null : h("span", { class: "bar" }, h("i", { style: { width: `${100 * done}%` } }))),
        fact("speed", run.steps_per_second ? `${short(Math.round(run.steps_per_second))} steps/s` : null),
        fact("episodes", run.episodes === null ? null : short(run.episodes)),
        fact(run.status === "running" ? "time left" : "took", run.status === "running" ? (run.seconds_left === null ? null : duration(run.seconds_left)) : duration(run.seconds)),
        fact("seed", story.seed === null ? null : String(story.seed)), fact("began", story.created.replace("T", " ").replace("+00:00", " UTC"))),
    );
  }
  return { element, update };
}
