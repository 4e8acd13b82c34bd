// Everything that happened, the latest first, with its reason.
import { debounced, h } from "../dom.js";
import { clock, format } from "../numbers.js";
import { isFrozen } from "../source.js";

export function events(context) {
  const list = h("div", { class: "wide log" });
  const kinds = h("select", { "aria-label": "kind of event", onchange: () => update(true) });
  const search = h("input", { type: "search", placeholder: "search events", "aria-label": "search events", oninput: debounced(() => update(true), 250) });
  const more = h("button", { type: "button", class: "more", onclick: () => older() }, "older events");
  const element = h("figure", { class: "whole" }, h("figcaption", {}, "Events"), isFrozen ? null : h("p", { class: "filters" }, kinds, search), list, more);
  let rows = [];
  const words = () => isFrozen ? { limit: 500 } : ({ kind: kinds.value || null, find: search.value.trim() || null });

  function row(event) {
    return h("tr", {}, h("td", { class: "num" }, format(event.step), h("small", {}, clock(event.time))), h("td", {}, h("span", { class: "kind" }, event.kind)), h("td", { class: "text" }, event.text));
  }
  function draw(hasMore) {
    list.replaceChildren(rows.length
      ? h("table", { class: "events" }, h("thead", {}, h("tr", {}, ["step", "what", "why"].map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, rows.map(row)))
      : h("p", { class: "note" }, "nothing of that kind has happened yet"));
    more.hidden = !hasMore || isFrozen;
  }
  async function older() {
    const part = await context.ask("events", { ...words(), before: rows.at(-1).id });
    rows = [...rows, ...part.events];
    draw(part.events.length >= 100);
  }
  async function update(isNew = false) {
    // A reader who has gone back is not thrown to the top.
    if (!isNew && rows.length > 100) return;
    const part = await context.ask("events", words());
    rows = part.events;
    const options = Object.entries(part.kinds);
    if (kinds.options.length !== options.length + 1) {
      const chosen = kinds.value;
      kinds.replaceChildren(h("option", { value: "" }, "all kinds"), ...options.map(([kind, count]) => h("option", { value: kind }, `${kind} (${format(count)})`)));
      kinds.value = chosen;
    }
    draw(rows.length >= 100);
  }
  return { element, update };
}
