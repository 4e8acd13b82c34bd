// What a reader has chosen: theme, x axis, smoothing, scale. Kept for the next visit where possible.

const KEY = "stepladder-view";
const listeners = new Set();
const usual = { theme: "auto", x: "steps", smooth: 0, log: false, hideEvents: false };

function stored() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}

export const settings = { ...usual, ...stored() };

// Takes over the first view of a report.
export function adopt(view) {
  Object.assign(settings, view);
}

export function set(name, value) {
  settings[name] = value;
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // A page without storage forgets.
  }
  applyTheme();
  for (const listener of [...listeners]) listener(name);
}

// Calls `listener(name)` after every change; returns what ends that.
export function onSetting(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// Paper is light, whatever the reader has chosen for the screen.
export function showOnPaper(isOnPaper) {
  if (isOnPaper) document.documentElement.dataset.theme = "light";
  else applyTheme();
  for (const listener of [...listeners]) listener("theme");
}

export function applyTheme() {
  if (settings.theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = settings.theme;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const listener of [...listeners]) listener("theme");
});
