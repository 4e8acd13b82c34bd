// From the curves of an answer to the lines of a chart: on the reader's axis, smoothed as asked.
import { settings } from "./settings.js";
import { withAlpha } from "./colours.js";

// The mean over so many neighbours on either side; gaps stay gaps and are left out.
export function smoothed(values, reach) {
  if (!reach) return values;
  return values.map((value, k) => {
    if (value === null) return null;
    const near = values.slice(Math.max(0, k - reach), k + reach + 1).filter((other) => other !== null);
    return near.reduce((a, b) => a + b, 0) / near.length;
  });
}

// curve: { name, x (steps), y, low?, high? }; look: what charts.js knows of a line besides numbers.
// A smoothed line has what was logged behind it, faintly.
export function lines(curve, axis, look) {
  const x = axis.places(curve.x);
  const reach = look.isMeasured ? 0 : settings.smooth;
  const name = look.name ?? curve.name;
  if (!reach) return [{ ...look, name, x, y: curve.y, low: curve.low ?? undefined, high: curve.high ?? undefined }];
  const faint = look.colour.map((colour) => withAlpha(colour, 0.3));
  return [
    { ...look, name, x, y: smoothed(curve.y, reach) },
    { ...look, name, isBehind: true, colour: faint, width: 1, x, y: curve.y },
  ];
}
