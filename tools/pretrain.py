"""Make the trained policies that come with the package, with their evaluations beside them.

``python tools/pretrain.py hockey`` trains it anew; ``--device cuda``, ``--config FILE`` and
``--total-steps`` change how. ``--from-run RUN`` takes the policy of a run that was trained
elsewhere instead, with ``--checkpoint best`` that of its best evaluation. Both are followed by an
evaluation on games that no training has used, and by the line for docs/games.md.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepladder import load_policy, train
from stepladder.agents.ppo.config import PPOConfig
from stepladder.cli.main import main as command
from stepladder.curricula import LearnabilityConfig
from stepladder.runs import RunReader
from stepladder.runs.evaluation_events import ends_of, scores_by_way
from stepladder.training.config import TrainingConfig, load_config
from stepladder.training.presets import HOCKEY_EVALUATION, LEDGE_AGENT, LEDGE_EVALUATION, PRESETS
from stepladder.training.pretrained import PRETRAINED_FOLDER, PRETRAINED_FORMAT

ENDS = ("value", "low", "high")
MOST_BYTES = 1_000_000
"""Of the weights: they are part of the repository and of every wheel."""

HOCKEY_STEPS = 24_000_000
LEDGE_STEPS = 30_000_000

CONFIGS: dict[str, TrainingConfig] = {
    "hockey": replace(
        PRESETS["hockey-sac"],
        env_kwargs={"actions": "discrete", "fineness": 1},
        total_steps=HOCKEY_STEPS,
        agent=PPOConfig(
            learning_rate=1e-3,
            gamma=0.98,
            num_epochs=2,
            rollout_steps=16_384,
            minibatch_size=1_024,
            share_layers=True,
            activation="relu",
            entropy_coef=0.005,
            normalise_observations=True,
            anneal_learning_rate=True,
            anneal_steps=HOCKEY_STEPS,
        ),
        evaluation=replace(HOCKEY_EVALUATION, every_steps=1_000_000, num_games=100),
    ),
    "ledge": replace(
        PRESETS["ledge"],
        total_steps=LEDGE_STEPS,
        source={"per_stage": 1_000},
        curriculum=LearnabilityConfig(),
        agent=replace(LEDGE_AGENT, anneal_learning_rate=True, anneal_steps=LEDGE_STEPS),
        evaluation=replace(LEDGE_EVALUATION, every_steps=1_000_000),
    ),
}
"""What each is trained with: PPO, which learns most in a quarter of an hour on two cores."""

EVALUATION = {
    "hockey": ("--episodes", "1000", "--seed", "20000"),
    "ledge": ("--episodes", "1024", "--levels", "test"),
}
"""Games that no training has used and no choice was made by."""


def parsed() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=CONFIGS)
    parser.add_argument("--from-run", type=Path, help="a finished training to take it from")
    parser.add_argument("--checkpoint", choices=("last", "best"), default="last")
    parser.add_argument("--config", help="a preset or a file, instead of the settings here")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--total-steps", type=int)
    parser.add_argument("--out", type=Path, default=PRETRAINED_FOLDER, help="folder for both files")
    return parser.parse_args()


def trained(arguments: argparse.Namespace, folder: Path) -> float:
    """Train, keep the run in a folder, and return how many seconds it took."""
    config = CONFIGS[arguments.name]
    if arguments.config is not None:
        config = load_config(arguments.config)
    began = time.monotonic()
    train(
        config,
        device=arguments.device,
        total_steps=arguments.total_steps,
        run_folder=folder,
        on_epoch=lambda now: print(
            f"\r{now.num_steps:,} of {now.total_steps:,} steps, {now.left_s:.0f} s left ", end=""
        ),
    )
    print()
    return time.monotonic() - began


def write(arguments: argparse.Namespace, run: Path, seconds: float | None) -> Path:
    """Write weights and document without an evaluation; return the document's file."""
    policy = load_policy(run, which=arguments.checkpoint)
    target = arguments.out / f"{arguments.name}.safetensors"
    policy.save(target)
    size = target.stat().st_size
    if size > MOST_BYTES:
        target.unlink()
        sys.exit(f"the weights have {size:,} bytes; at most {MOST_BYTES:,}: use smaller layers.")
    info = RunReader(run).info
    # What a device and its threads were does not change what is played.
    config = replace(load_config(info.config), device="cpu")
    kwargs = {key: value for key, value in config.env_kwargs.items() if key != "num_threads"}
    document: dict[str, Any] = {
        "format": PRETRAINED_FORMAT,
        "sha256": hashlib.sha256(target.read_bytes()).hexdigest(),
        "step": policy.step,
        "seconds": None if seconds is None else round(seconds),
        "version": info.version,
        "config": replace(config, env_kwargs=kwargs).to_json(),
        "evaluation": {},
    }
    path = target.with_suffix(".json")
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    return path


def evaluated(name: str, path: Path) -> None:
    """Evaluate the policy as any user would, and keep the figures in its document."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder, "figures.json")
        code = command(["eval", "--pretrained", name, *EVALUATION[name], "--out", str(figures)])
        if code != 0:
            sys.exit(code)
        played = json.loads(figures.read_text())
    document = json.loads(path.read_text())
    document["evaluation"] = {key: played.get(key) for key in ("env", "levels", "seed")}
    document["evaluation"]["ways"] = {
        way: {part: dict(zip(ENDS, ends_of(score), strict=True)) for part, score in scores.items()}
        for way, scores in scores_by_way(played).items()
    }
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    own, *_ = document["evaluation"]["ways"].values()
    told = ", ".join(f"{part} {ends['value']:.3f}" for part, ends in own.items())
    print(f"| `{name}` | {document['step'] / 1e6:.0f} million | {told} |")


def main() -> None:
    """Make one policy."""
    arguments = parsed()
    with tempfile.TemporaryDirectory() as folder:
        run, seconds = arguments.from_run, None
        if run is None:
            run = Path(folder, arguments.name)
            seconds = trained(arguments, run)
        path = write(arguments, run, seconds)
    if arguments.out == PRETRAINED_FOLDER:
        evaluated(arguments.name, path)
    else:
        print(
            f"{path}: not evaluated, for only what lies in {PRETRAINED_FOLDER} is found by its name"
        )


if __name__ == "__main__":
    main()
