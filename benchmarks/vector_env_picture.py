"""The picture of `vector_env.py`: env steps per second of each library, beside a plain loop.

Takes the rows of that benchmark; gives one standalone SVG file for light and dark pages.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

OURS, LOOP = "Stepladder", "plain loop"
TIMES = "\N{MULTIPLICATION SIGN}"
WIDTH, COLUMNS, GUTTER, TOP, HEAD, PLOT, FOOT, LEGEND_ROW = 900, 3, 42, 38, 26, 190, 34, 21
FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif"

# By class in the style sheet: the shade on a light page and that on a dark one.
INKS = {
    "ground": ("#ffffff", "#0d1117"),
    "text": ("#1d2129", "#e6edf3"),
    "faint": ("#667080", "#9aa4b2"),
    "grid": ("#e4e8ed", "#2a313c"),
}
COLOURS = (
    *(("#0068a8", "#4aa8e8"), ("#667080", "#9aa4b2"), ("#d55e00", "#ff8a3d")),
    *(("#00876a", "#2fc99f"), ("#b5468b", "#e48bc0"), ("#c98a00", "#f0b93a")),
    *(("#3c3c46", "#d6d6de"), ("#4fa6d8", "#9ad6ff"), ("#7a2e1d", "#d98f78")),
)
"""Ours, the plain loop, and one for each family of libraries."""

Rates = dict[tuple[str, str, int], float]
"""Steps per second by world, library and number of envs; NaN if there are none."""


def throughput_svg(
    rows: Sequence[Mapping[str, Any]], *, num_cores: int, title: str | None = None
) -> str:
    """Draw how fast each library runs many envs, one panel per world.

    Args:
        rows: Each has `world`, `library`, `num_envs` and `steps_per_s`; a rate that is not a
            positive number leaves a gap. Libraries whose names begin with the same word share a
            colour; the first of them is solid, the others are dashed.
        num_cores: Cores of the machine; a line shows that multiple of the plain loop.
        title: Heading above the panels.

    Raises:
        ValueError: There are no rows, two rows have the same world, library and number of envs, or
            a row has no plain loop to be compared with.
    """
    rates: Rates = {}
    for row in rows:
        key = (str(row["world"]), str(row["library"]), int(row["num_envs"]))
        if key in rates:
            raise ValueError(f"rows must name each cell once; got {key} twice. Leave one out.")
        rate = float(row["steps_per_s"] or math.nan)
        rates[key] = rate if 0 < rate < math.inf else math.nan
    if not rates:
        raise ValueError("rows must hold at least one rate; got none. Measure something.")
    for world, _, num_envs in rates:
        if math.isnan(rates.get((world, LOOP, num_envs), math.nan)):
            raise ValueError(f"{world!r} with {num_envs} envs needs a rate of {LOOP!r}.")
    worlds = list(dict.fromkeys(world for world, _, _ in rates))
    looks = _looks(list(dict.fromkeys(library for _, library, _ in rates)))
    columns = min(COLUMNS, len(worlds) + 1)
    # The legend takes the place of a panel, and there may be many lines.
    panel = (WIDTH - 12) / columns - GUTTER, max(HEAD + PLOT + FOOT, HEAD + LEGEND_ROW * len(looks))
    height = TOP + -(-(len(worlds) + 1) // columns) * (panel[1] + 8) + 24
    heading = title or f"Env steps per second on {num_cores} cores, by number of envs"
    parts = [_label(12, 22, heading, size=15, weight=600)]
    for place in range(len(worlds) + 1):
        row, column = divmod(place, columns)
        left, top = GUTTER + column * (panel[0] + GUTTER), TOP + row * (panel[1] + 8)
        if place < len(worlds):
            parts.append(_panel(rates, worlds[place], looks, num_cores, (left, top, panel[0])))
        else:
            parts.append(_legend(looks, left, top))
    parts.append(_label(12, height - 10, f"1{TIMES} is the {LOOP} over as many envs.", "faint", 11))
    shades = {**INKS, **{f"c{k}": colour for k, colour in enumerate(COLOURS)}}
    rules = "".join(
        f"text.{name},rect.{name}{{fill:{dark}}}path.{name}{{stroke:{dark}}}"
        for name, (_, dark) in shades.items()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" font-family="{FONT}">'
        f"<title>{escape(heading)}</title>"
        f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
        f'<rect class="ground" width="100%" height="100%" fill="{INKS["ground"][0]}"/>'
        f"{''.join(parts)}</svg>\n"
    )


def _looks(libraries: Sequence[str]) -> dict[str, tuple[int, str, float]]:
    """Return colour, dashes and width of each library's line; ours and the loop come first."""
    looks: dict[str, tuple[int, str, float]] = {}
    families: dict[str, int] = {}
    for library in sorted(libraries, key=lambda name: (name != OURS, name != LOOP)):
        if library in (OURS, LOOP):
            looks[library] = (0, "", 3.4) if library == OURS else (1, "", 2.2)
            continue
        word = library.split()[0]
        dash = "5 4" if word in families else ""
        place = families.setdefault(word, 2 + len(families) % (len(COLOURS) - 2))
        looks[library] = (place, dash, 1.6)
    return looks


def _panel(
    rates: Rates,
    world: str,
    looks: Mapping[str, tuple[int, str, float]],
    num_cores: int,
    area: tuple[float, float, float],
) -> str:
    left, top, width = area
    counts = sorted({num_envs for _, _, num_envs in rates})
    speedups = {
        key: rate / rates[world, LOOP, key[2]] for key, rate in rates.items() if key[0] == world
    }
    highest = 1.15 * max([num_cores, *(v for v in speedups.values() if math.isfinite(v))])
    low, high = math.log(counts[0] / 1.15), math.log(counts[-1] * 1.15)

    def x(num_envs: int) -> float:
        return left + width * (math.log(num_envs) - low) / (high - low)

    # From 0, so that heights can be compared.
    def y(speedup: float) -> float:
        return top + HEAD + PLOT * (1 - speedup / highest)

    unit = statistics.median(r for (w, name, _), r in rates.items() if (w, name) == (world, LOOP))
    parts = [
        _label(left, top + 16, world[:24], weight=600),
        _label(left + width, top + 16, f"1{TIMES} = {unit:,.0f}/s", "faint", 11, anchor="end"),
    ]
    step = next(s for s in _round_steps() if highest / s <= 5)
    for tick in (k * step for k in range(int(highest / step) + 1)):
        parts.append(_rule(f"M{left:.1f} {y(tick):.1f}h{width:.1f}", "grid"))
        parts.append(_label(left - 6, y(tick) + 4, f"{tick:g}{TIMES}", "faint", anchor="end"))
    last = -math.inf
    for count in counts:
        if x(count) - last >= 26:
            last = x(count)
            parts.append(_label(last, top + HEAD + PLOT + 16, str(count), "faint", anchor="middle"))
    parts.append(_rule(f"M{left:.1f} {y(num_cores):.1f}h{width:.1f}", "text", "2 3"))
    parts.append(_label(left + 4, y(num_cores) - 5, f"{num_cores} cores", size=11))
    # Ours is drawn last, over the others.
    for library in sorted(looks, key=lambda name: looks[name][2]):
        mine = {
            n: (rates[world, library, n], speedups[world, library, n])
            for n in counts
            if (world, library, n) in rates
        }
        parts.append(_line(library, mine, looks[library], x, y))
    return f'<g class="panel">{"".join(parts)}</g>'


def _round_steps() -> Sequence[float]:
    return [digit * 10.0**power for power in range(-2, 9) for digit in (1, 2, 5)]


def _line(
    library: str,
    mine: Mapping[int, tuple[float, float]],
    look: tuple[int, str, float],
    x: Callable[[int], float],
    y: Callable[[float], float],
) -> str:
    path, meaning = "", []
    begins = True
    for num_envs, (rate, speedup) in mine.items():
        if math.isfinite(speedup):
            path += f"{'M' if begins else 'L'}{x(num_envs):.1f} {y(speedup):.1f}"
            meaning.append(f"{num_envs} envs {rate:,.0f}/s ({speedup:.2f}{TIMES})")
        begins = not math.isfinite(speedup)
    if not meaning:
        return ""
    title = escape(f"{library}: {'; '.join(meaning)}")
    return f'<g class="line"><title>{title}</title>{_stroke(path, look)}</g>'


def _legend(looks: Mapping[str, tuple[int, str, float]], left: float, top: float) -> str:
    parts: list[str] = []
    for rank, (library, look) in enumerate(looks.items()):
        y = top + HEAD + (rank + 0.5) * LEGEND_ROW
        parts.append(_stroke(f"M{left + 12:.1f} {y:.1f}h34", look))
        parts.append(_label(left + 56, y + 4, library[:28], weight=600 if look[0] == 0 else 400))
    return f'<g class="legend">{"".join(parts)}</g>'


def _stroke(d: str, look: tuple[int, str, float]) -> str:
    place, dash, width = look
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<path class="c{place}" d="{d}" stroke="{COLOURS[place][0]}" stroke-width="{width}" '
        f'stroke-linecap="round" stroke-linejoin="round" fill="none"{dashes}/>'
    )


def _rule(d: str, ink: str, dash: str = "") -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path class="{ink}" d="{d}" stroke="{INKS[ink][0]}" fill="none"{dashes}/>'


def _label(
    x: float,
    y: float,
    text: str,
    ink: str = "text",
    size: int = 12,
    weight: int = 400,
    anchor: str = "start",
) -> str:
    return (
        f'<text class="{ink}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'fill="{INKS[ink][0]}" font-weight="{weight}" font-size="{size}">{escape(text)}</text>'
    )
