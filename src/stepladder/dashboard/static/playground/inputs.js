// One row per setting: a slider and a field for numbers, a switch, a list, or text.
import { h } from "../dom.js";

const STEPS = 400;

// Where a value lies on a slider, and back; both ends are reached exactly.
function scaleOf({ low, high, log }, isWhole) {
  const digits = (value) => Number(value.toPrecision(3));
  if (log)
    return {
      place: (value) => Math.round((STEPS * Math.log(Math.max(value, low) / low)) / Math.log(high / low)),
      value: (place) => digits(low * (high / low) ** (place / STEPS)),
    };
  return {
    place: (value) => Math.round((STEPS * (value - low)) / (high - low)),
    value: (place) => (isWhole ? Math.round(low + ((high - low) * place) / STEPS) : digits(low + ((high - low) * place) / STEPS)),
  };
}

const shown = (value) => (value === null || value === undefined ? "" : Array.isArray(value) ? value.join(" ") : String(value));

// Returns { row, show(value) }; `onChange(value)` is called with every new value that can be read.
export function input(setting, onChange) {
  const id = `set-${setting.name}`;
  const title = setting.name.replace(/^(dynamics|noise)\./, "").replaceAll("_", " ").replaceAll(".", ": ");
  const reset = h("button", { type: "button", class: "reset", title: `back to ${shown(setting.value) || "the default"}`, "aria-label": `reset ${title}`, onclick: () => tell(setting.value) }, "\u21ba");
  const about = h("small", { id: `${id}-about` }, setting.about);
  const head = [h("label", { for: id }, title), reset];
  const common = { id, "aria-describedby": `${id}-about` };
  let fields = [];
  let show = () => {};

  function tell(value) {
    mark(value);
    show(value);
    onChange(value);
  }
  const row = h("div", { class: `setting ${setting.kind}` });
  const mark = (value) => row.classList.toggle("changed", JSON.stringify(value) !== JSON.stringify(setting.value));

  if (setting.kind === "switch") {
    const box = h("input", { ...common, type: "checkbox", role: "switch", onchange: () => tell(box.checked) });
    show = (value) => { box.checked = value; };
    fields = [box];
  } else if (setting.kind === "choice") {
    const list = h("select", { ...common, onchange: () => tell(list.value) }, setting.choices.map((one) => h("option", { value: one }, one)));
    show = (value) => { list.value = value; };
    fields = [list];
  } else if (setting.slider) {
    const isWhole = setting.kind === "integer";
    const scale = scaleOf(setting.slider, isWhole);
    const field = h("input", { ...common, class: "value", inputmode: "decimal", autocomplete: "off", placeholder: setting.can_be_none ? "auto" : "", onchange: () => {
      const text = field.value.trim();
      const number = Number(text);
      if (text === "" || text === "auto") tell(setting.can_be_none ? null : setting.value);
      else if (Number.isFinite(number)) tell(number);
      else show(setting.value);
    } });
    const slider = h("input", { type: "range", min: 0, max: STEPS, "aria-label": title, oninput: () => tell(scale.value(Number(slider.value))) });
    show = (value) => {
      field.value = shown(value);
      slider.value = value === null ? 0 : Math.min(STEPS, Math.max(0, scale.place(value)));
      slider.setAttribute("aria-valuetext", shown(value) || "auto");
    };
    head.push(field);
    fields = [slider];
  } else {
    const isList = setting.kind === "names";
    const field = h("input", { ...common, class: "text", autocomplete: "off", onchange: () => {
      const text = field.value.trim();
      if (isList) tell(text.split(/[\s,+]+/).filter(Boolean));
      else tell(text === "" ? (setting.can_be_none ? null : setting.value) : text);
    } });
    show = (value) => { field.value = shown(value); };
    fields = [field];
  }
  row.append(h("div", { class: "row" }, head, setting.slider ? [] : fields), ...(setting.slider ? fields : []), about);
  return { row, show: (value) => { mark(value); show(value); } };
}
