// The playground: a scenario, a curriculum, sliders; the simulated learner answers at once.
import { debounced, h } from "./dom.js";
import { format } from "./numbers.js";
import { onSetting } from "./settings.js";
import { link } from "./shell.js";
import { ask } from "./source.js";
import { input } from "./playground/inputs.js";
import { differing, fromWords, asWords } from "./playground/question.js";
import { CURVES, Result, unitOf } from "./playground/result.js";

const SLOW_MS = 1500;

async function show(main, words) {
  const asker = Math.random().toString(36).slice(2);
  let [turn, known, question] = [0, null, fromWords(words)];
  const result = new Result();
  const state = h("p", { class: "state", role: "status" });
  const panel = h("form", { class: "panel", "aria-label": "what is played", onsubmit: (event) => event.preventDefault() });
  const folded = h("details", { class: "folded", open: true }, h("summary", {}, "Settings"), panel);
  main.append(h("h1", {}, "Playground"), h("p", { class: "note lead" }, "A simulated learner practises what the curriculum draws. Nothing is trained; every answer is played anew."),
    h("div", { class: "playground" }, folded, h("div", {}, state, result.element)));
  const wide = matchMedia("(min-width: 900px)");
  const fold = () => { folded.open = wide.matches; };
  wide.addEventListener("change", fold);
  fold();

  const asked = () => ({ question: JSON.stringify({
    ...question,
    settings: differing(question.settings, known?.settings ?? []),
    learner: differing(question.learner, known?.learner ?? []),
  }), asker, turn });

  async function play() {
    const mine = ++turn;
    const slow = setTimeout(() => { state.textContent = "playing; the first answer of a method may take a while, because it is compiled"; }, SLOW_MS);
    const shownWords = { ...asWords({ ...question, settings: differing(question.settings, known.settings), learner: differing(question.learner, known.learner) }) };
    history.replaceState(null, "", link("playground", shownWords));
    result.begin(question.curriculum);
    const began = performance.now();
    try {
      const unit = unitOf(known.scenario.measure);
      await Promise.all(CURVES.map(async (curve) => {
        const course = await ask("play", { ...asked(), curve });
        if (mine === turn) result.add(curve, course, unit);
      }));
      if (mine !== turn) return;
      const outcome = await ask("played", asked());
      if (mine !== turn) return;
      result.end(outcome);
      clearTimeout(slow);
      state.textContent = `answered in ${format(Math.round(performance.now() - began))} ms`;
      document.documentElement.dataset.played = String(mine);
      const seeds = await ask("played-seeds", asked());
      if (mine !== turn) return;
      result.band(seeds);
      state.textContent += `, all seeds in ${format(Math.round(performance.now() - began))} ms`;
    } catch (error) {
      if (mine !== turn) return;
      state.textContent = "";
      result.refuse(error);
      document.documentElement.dataset.played = String(mine);
    } finally {
      clearTimeout(slow);
    }
  }
  const soon = debounced(play, 60);

  // Another scenario or curriculum has other settings; those with the same name keep their values.
  async function choose() {
    const { scenario, curriculum, learner } = question;
    try {
      known = await ask("playground", { question: JSON.stringify({ scenario, curriculum, learner }) });
    } catch (error) {
      // A form to start again from.
      known ??= await ask("playground");
      fill();
      result.refuse(error);
      document.documentElement.dataset.played = String(++turn);
      return;
    }
    fill();
    // Not waited for: the form can be used meanwhile.
    play();
  }

  function group(title, about, settings, values) {
    const fields = settings.map((setting) => {
      const made = input(setting, (value) => { values[setting.name] = value; soon(); });
      made.show(Object.hasOwn(values, setting.name) ? values[setting.name] : setting.value);
      return made.row;
    });
    return h("fieldset", {}, h("legend", {}, title), about ? h("small", { class: "about" }, about) : null, fields);
  }

  function fill() {
    const { scenario, scenarios, forms, curricula, limits } = known;
    const own = { name: "num_envs", kind: "integer", value: 8, about: "Envs that play at the same time.", slider: { low: 1, high: Math.min(limits.num_envs, 256), log: true } };
    const budget = { name: "budget", kind: "integer", value: scenario.budget, about: `How long they play, in ${unitOf(scenario.measure)}; by default about twice as long as uniform needs.`, slider: { low: Math.max(1, Math.round(scenario.budget / 20)), high: Math.min(limits.budget, scenario.budget * 5), log: true } };
    const seed = { name: "seed", kind: "integer", value: 0, about: "Of the learner and of the curriculum. Another seed, another course.", slider: { low: 0, high: 50, log: false } };
    const seeds = { name: "num_seeds", kind: "integer", value: 8, about: "Seeds of the band: that one and those after it.", slider: { low: 1, high: limits.num_seeds, log: true } };
    const places = h("datalist", { id: "scenarios" }, scenarios.map((one) => h("option", { value: one.name }, one.about)));
    const place = h("input", { id: "scenario", class: "text", list: "scenarios", value: question.scenario, autocomplete: "off", spellcheck: "false", onchange: () => {
      question = { ...question, scenario: place.value.trim(), learner: {}, budget: undefined };
      choose();
    } });
    const method = h("select", { id: "curriculum", onchange: () => { question = { ...question, curriculum: method.value, settings: {} }; choose(); } },
      curricula.map((one) => h("option", { value: one.name }, one.name)));
    method.value = question.curriculum;
    const about = curricula.find((one) => one.name === question.curriculum)?.about ?? "";
    const top = h("fieldset", {}, h("legend", {}, "What"),
      h("label", { for: "scenario" }, "scenario"), place, places,
      h("small", { class: "about" }, `${scenario.about}; ${format(scenario.num_tasks)} tasks. Measured: ${scenario.measure}.`),
      h("details", {}, h("summary", {}, "all scenarios"), h("ul", { class: "forms" },
        scenarios.map((one) => h("li", {}, h("button", { type: "button", class: "more", onclick: () => { place.value = one.name; place.dispatchEvent(new Event("change")); } }, one.name), h("small", {}, ` ${one.about}`))),
        h("li", {}, h("small", {}, `further ones: ${forms.map((one) => one.form).join(", ")}`)))),
      h("label", { for: "curriculum" }, "curriculum"), method, h("small", { class: "about" }, about));
    const simple = group("How long", "", [own, budget, seed, seeds], question);
    panel.replaceChildren(top,
      group(`Settings of ${question.curriculum}`, known.settings.length ? "" : "It has none.", known.settings, question.settings),
      group("The learner", "How practice turns into skill.", known.learner, question.learner),
      simple,
      h("p", {}, h("button", { type: "button", class: "more", onclick: () => { question = { ...question, settings: {}, learner: {}, num_envs: undefined, budget: undefined, seed: undefined, num_seeds: undefined }; fill(); play(); } }, "reset everything")));
  }

  const unsubscribe = onSetting((name) => { if (name === "theme") result.draw(); });
  await choose();
  return { close: () => { turn = Infinity; unsubscribe(); wide.removeEventListener("change", fold); result.close(); } };
}

export const page = { title: "Playground", show };
