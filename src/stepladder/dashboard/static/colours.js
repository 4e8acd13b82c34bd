// Colours with one meaning each: of labels in stage order, of runs, of heat.
// Each colour is a pair, for light and for dark ground; `shade` takes the one in force.

// Of runs. Told apart with the common colour vision deficiencies: neighbours differ in lightness.
const RUNS = [
  ["#0068a8", "#4aa8e8"],
  ["#d55e00", "#ff8a3d"],
  ["#00876a", "#2fc99f"],
  ["#b5468b", "#e48bc0"],
  ["#c98a00", "#f0b93a"],
  ["#3c3c46", "#d6d6de"],
  ["#4fa6d8", "#9ad6ff"],
  ["#7a2e1d", "#d98f78"],
  ["#6a4fb3", "#ab97f0"],
  ["#7d8a1c", "#c3d24e"],
];
const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3]];
// Lightness rises along the scale, so it stays ordered in grey print.
const SCALE = [
  [27, 32, 98],
  [36, 92, 146],
  [38, 146, 148],
  [112, 190, 112],
  [228, 216, 82],
];
// Few labels: from cold to warm, each as far from its neighbours as can be.
const LABELS = [
  ["#3355b8", "#7f9cf5"],
  ["#0f8aa6", "#3fbcd8"],
  ["#2e8b57", "#52c98a"],
  ["#b58900", "#e6c04a"],
  ["#d3601c", "#f5935a"],
  ["#b8336a", "#ee7fab"],
  ["#6b4ba3", "#b79af0"],
  ["#6b5b4b", "#c4b09a"],
];

export const FAINT = ["#68707d", "#97a1b1"];
export const GRID = ["#e6e9ee", "#2a313c"];
export const MAIN = ["#2b59c3", "#7ea2ff"];
// Of a whole beside its parts.
export const TOTAL = ["#1b2028", "#f2f4f7"];
export const GOOD = ["#1f8a4c", "#52c98a"];

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
export const shade = (pair) => pair[isDark() ? 1 : 0];

export function scaleRgb(position) {
  const place = Math.min(Math.max(position, 0), 1) * (SCALE.length - 1);
  const left = Math.min(Math.floor(place), SCALE.length - 2);
  return SCALE[left].map((low, k) => Math.round(low + (SCALE[left + 1][k] - low) * (place - left)));
}

export const runColour = (index) => RUNS[index % RUNS.length];
export const runDash = (index) => DASHES[Math.floor(index / RUNS.length) % DASHES.length];

// Of the label with this place among so many, in stage order.
export function labelColour(rank, count) {
  if (count <= LABELS.length) return LABELS[rank];
  const place = count > 1 ? rank / (count - 1) : 0;
  // The palest part of the scale is left out on light ground, the darkest on dark ground.
  return [0.02 + 0.86 * place, 0.28 + 0.72 * place].map((position) => `rgb(${scaleRgb(position)})`);
}

export const withAlpha = (colour, alpha) => `color-mix(in srgb, ${colour} ${Math.round(100 * alpha)}%, transparent)`;
