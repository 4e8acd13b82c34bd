"""The settings of a run as dotted names, for tables and for comparisons."""

import json
from collections.abc import Mapping
from typing import Any

from stepladder.runs import RunReader

MOST_LETTERS = 400
MOST_SETTINGS = 2_000


def settings(reader: RunReader, params: Mapping[str, str]) -> dict[str, Any]:
    """Return what ``config.json`` says, every setting with its dotted name."""
    info = reader.info
    flat = flattened(info.config)
    return {
        "kind": info.kind,
        "seed": info.seed,
        "created": info.created,
        "version": info.version,
        "git_commit": info.git_commit,
        "settings": dict(list(flat.items())[:MOST_SETTINGS]),
    }


def flattened(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested settings as dotted names with their values written as JSON."""
    flat: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            flat.update(flattened(value, f"{prefix}{key}."))
        else:
            written = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            shown = written if len(written) <= MOST_LETTERS else f"{written[:MOST_LETTERS]}…"
            flat[f"{prefix}{key}"] = shown
    return flat
