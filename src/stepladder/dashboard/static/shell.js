// The frame around all pages: header, choice of page by the address, news of runs, keyboard.
// A page is { title, show(main, params) -> { refresh(names)?, close()? } or a promise of it }.
import { choice, h } from "./dom.js";
import { isFrozen, listen } from "./source.js";
import { applyTheme, set, settings, showOnPaper } from "./settings.js";

let pages = {};
let current = null;
let turn = 0;

// The address of a page: link("run", { run: "a" }) is "#/run?run=a".
export function link(page, params = {}) {
  const words = new URLSearchParams(params);
  return `#/${page}${words.size ? `?${words}` : ""}`;
}

function whereNow() {
  const [name, words] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: Object.hasOwn(pages, name) ? name : Object.keys(pages)[0], params: Object.fromEntries(new URLSearchParams(words ?? "")) };
}

export const problem = (error) => h("p", { class: "problem", role: "alert" }, String(error.message ?? error));

async function go() {
  const mine = ++turn;
  const { name, params } = whereNow();
  const main = document.querySelector("main");
  current?.close?.();
  current = null;
  const fresh = h("main", { id: "main", tabindex: "-1", "data-page": name });
  main.replaceWith(fresh);
  for (const tab of document.querySelectorAll("header nav a"))
    if (tab.dataset.page === name) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  document.title = `${params.run ? `${params.run} - ` : ""}${pages[name].title} - Stepladder`;
  try {
    const shown = await pages[name].show(fresh, params);
    if (mine === turn) current = shown ?? {};
    else shown?.close?.();
  } catch (error) {
    console.error(error);
    fresh.append(problem(error));
  }
  document.documentElement.dataset.ready = name;
}

// Keys: whatever is in view and has this key in data-key gets the focus or is clicked.
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) && event.target.type !== "checkbox" && event.target.type !== "range";
  if (isTyping) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const found = [...document.querySelectorAll("[data-key]")].find((element) => element.dataset.key === event.key && element.offsetParent);
  if (!found) return;
  event.preventDefault();
  if (found.tagName === "INPUT" && found.type === "search") found.focus();
  else found.click();
}

// Starts the frame with the pages of one entry module; the first is shown at the bare address.
export function start(known, { title = "Stepladder", tabs = Object.keys(known) } = {}) {
  pages = known;
  applyTheme();
  const state = h("span", { class: "connection", role: "status" });
  const themes = [["auto", "auto"], ["light", "light"], ["dark", "dark"]];
  document.body.prepend(
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); document.getElementById("main").focus(); } }, "To the content"),
    h("header", { class: "top" },
      h("a", { class: "brand", href: "#/" }, h("span", { class: "mark", "aria-hidden": "true" }), title),
      h("nav", { "aria-label": "pages" }, tabs.length > 1 && tabs.map((name) => h("a", { href: `#/${name}`, "data-page": name }, pages[name].title))),
      state,
      choice("theme", themes, settings.theme, (value) => set("theme", value))),
    h("main", { id: "main", tabindex: "-1" }),
  );
  addEventListener("hashchange", go);
  addEventListener("keydown", onKey);
  // Paper is light, and has no cursor to open anything.
  const redraw = () => {
    for (const place of document.querySelectorAll(".chart")) place.chart?.update();
  };
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
    showOnPaper(true);
    redraw();
  });
  addEventListener("afterprint", () => {
    showOnPaper(false);
    redraw();
  });
  listen(
    (names) => current?.refresh?.(names),
    (isConnected) => {
      state.textContent = isConnected ? "live" : "not connected";
      state.classList.toggle("off", !isConnected);
    },
  );
  if (isFrozen) state.textContent = "";
  go();
}
