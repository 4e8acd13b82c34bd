// Elements from plain values. Text from runs becomes text nodes and attributes, never markup.

// h("p", { class: "note" }, "text", element, [more]) makes an element. Functions under names such as
// onclick are listeners; null, undefined and false are left out.
export function h(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "rect", "line", "g", "circle", "text", "title"].includes(tag) && attributes.ns !== "html";
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "ns" || value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Calls `change` once, `delay` ms after the last of several calls.
export function debounced(change, delay) {
  let timer = 0;
  return (...words) => {
    clearTimeout(timer);
    timer = setTimeout(() => change(...words), delay);
  };
}

// Watches figures with the name of a metric, and draws what is old as soon as it is nearly in sight.
// `find` gives the entry of a name, which notes `isSeen` and has `isOld` until it is drawn. On paper
// all are in sight.
export function drawnWhenSeen(find, draw) {
  const drawAll = () => {
    for (const figure of document.querySelectorAll("figure[data-metric]:not([hidden])")) {
      const entry = find(figure.dataset.metric);
      if (entry?.figure === figure && entry.isOld) draw(entry);
    }
  };
  addEventListener("beforeprint", drawAll);
  const watcher = new IntersectionObserver((figures) => {
    for (const { target, isIntersecting } of figures) {
      const entry = find(target.dataset.metric);
      if (!entry) continue;
      entry.isSeen = isIntersecting;
      if (isIntersecting && entry.isOld) draw(entry);
    }
  }, { rootMargin: "200px" });
  return {
    observe: (figure) => watcher.observe(figure),
    disconnect() {
      watcher.disconnect();
      removeEventListener("beforeprint", drawAll);
    },
  };
}

// A row of buttons of which one is pressed: [[value, text], ...].
export function choice(name, options, current, onChoose) {
  const buttons = options.map(([value, text]) =>
    h("button", {
      type: "button",
      "aria-pressed": String(value === current),
      "data-value": value,
      onclick: (event) => {
        for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
        onChoose(value);
      },
    }, text));
  return h("span", { class: "choice", role: "group", "aria-label": name }, buttons);
}
