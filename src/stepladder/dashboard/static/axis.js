// The x axis that a reader has chosen: steps, episodes or time. Curves come by steps.
import { duration, format, formatTicks, short } from "./numbers.js";
import { settings } from "./settings.js";

export const X_CHOICES = [["steps", "steps"], ["episodes", "episodes"], ["time", "time"]];

export class Axis {
  // known: { steps, seconds, episodes }, all rising.
  constructor(known) {
    this.known = known;
  }

  get kind() {
    if (settings.x === "episodes" && !this.known.episodes.some((count) => count !== null)) return "steps";
    return X_CHOICES.some(([value]) => value === settings.x) ? settings.x : "steps";
  }

  get column() {
    return { steps: this.known.steps, episodes: this.known.episodes, time: this.known.seconds }[this.kind];
  }

  // Where steps lie on the axis: between two known steps, in proportion.
  places(steps) {
    if (this.kind === "steps") return steps;
    const [xs, ys] = [this.known.steps, this.column];
    let right = 0;
    return steps.map((step) => {
      if (right && xs[right - 1] > step) right = 0;
      while (right < xs.length && xs[right] < step) right++;
      if (right === 0) return xs.length ? ((ys[0] ?? 0) * step) / (xs[0] || 1) : 0;
      if (right === xs.length) return ys[right - 1] ?? 0;
      const share = (step - xs[right - 1]) / (xs[right] - xs[right - 1] || 1);
      const [from, to] = [ys[right - 1] ?? 0, ys[right] ?? 0];
      return from + share * (to - from);
    });
  }

  place(step) {
    return this.places([step])[0];
  }

  get end() {
    return this.column.at(-1) ?? 1;
  }

  // What charts need to know of it.
  get spec() {
    const isTime = this.kind === "time";
    return {
      xLabel: isTime ? "time since it began" : this.kind,
      xFormat: isTime ? (x) => duration(x) : (x) => format(Math.round(x)),
      xTicks: isTime ? (ticks, step) => timeTicks(ticks, step) : (ticks, step) => formatTicks(ticks, step),
      xRange: [0, this.end || 1],
    };
  }
}

function timeTicks(ticks, step) {
  const [unit, name] = step >= 3600 ? [3600, "h"] : step >= 60 ? [60, "min"] : [1, "s"];
  return ticks.map((tick) => `${short(tick / unit)} ${name}`);
}
