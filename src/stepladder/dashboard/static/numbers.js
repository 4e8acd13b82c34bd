// Numbers, durations and shares as text for people.

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
const UNITS = [
  [1e12, "T"],
  [1e9, "B"],
  [1e6, "M"],
  [1e3, "K"],
];
export const MISSING = "\u2013";

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

export function format(value) {
  if (!isNumber(value)) return MISSING;
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en").replace("-", "\u2212");
  return String(Number(value.toPrecision(4))).replace("-", "\u2212");
}

// 1234567 as 1.23M.
export const short = (value) => (isNumber(value) ? (Math.abs(value) < 1e4 ? format(Math.abs(value) < 100 ? value : Math.round(value)) : compact.format(value)) : MISSING);

// A share or a success: 0.57.
export const share = (value) => (isNumber(value) ? value.toFixed(2).replace("-", "\u2212") : MISSING);

export const signed = (value) => (isNumber(value) ? `${value < 0 ? "\u2212" : "+"}${Math.abs(value).toFixed(2)}` : MISSING);

export function duration(seconds) {
  if (!isNumber(seconds)) return MISSING;
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s < 600 && s % 60 ? ` ${s % 60} s` : ""}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function clock(seconds) {
  if (!isNumber(seconds)) return MISSING;
  return new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

const isExtreme = (size) => size !== 0 && (size < 1e-3 || size >= 1e15);

// Ticks of one axis share unit and decimals; those of a log axis have a decade each.
export function formatTicks(ticks, step, isLog) {
  const alone = (tick) =>
    tick === null
      ? ""
      : isExtreme(Math.abs(tick))
        ? String(Number(tick.toPrecision(3)).toExponential())
        : Math.abs(tick) >= 1e4
          ? compact.format(tick)
          : String(Number(tick.toPrecision(6)));
  const largest = Math.max(...ticks.map(Math.abs));
  if (isLog || isExtreme(largest)) return ticks.map(alone);
  const [unit, suffix] = UNITS.find(([size]) => largest >= Math.max(size, 1e4)) ?? [1, ""];
  // As many as the step needs: 0.25 has two.
  const scaled = step / unit;
  const isWhole = (places) => Math.abs(scaled * 10 ** places - Math.round(scaled * 10 ** places)) < 1e-6 * scaled * 10 ** places;
  const decimals = [0, 1, 2, 3, 4, 5, 6, 7].find(isWhole) ?? 8;
  return ticks.map((tick) => (tick / unit).toFixed(decimals) + (tick ? suffix : ""));
}

export function shortened(text, longest) {
  if (text.length <= longest) return text;
  const tail = Math.floor(longest / 2);
  return `${text.slice(0, longest - tail - 1)}\u2026${text.slice(-tail)}`;
}
