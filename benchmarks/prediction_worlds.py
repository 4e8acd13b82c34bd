"""The worlds in which predictions are tested: what is practised, by whom, for how long.

Read by `prediction`. Each world is one training config, in which only curriculum and seed change;
held-out tasks that the training never sees; and the labels by which curricula are judged.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from stepladder import Task
from stepladder.agents.ppo.config import PPOConfig
from stepladder.curricula import (
    PUBLISHED_MIXING,
    AdvantageBanditConfig,
    CurriculumConfig,
    FrontierConfig,
    LearnabilityConfig,
    LearningProgressConfig,
    LevelReplayConfig,
    Phase,
    PhasedConfig,
    Stage,
    StagedConfig,
    UniformConfig,
)
from stepladder.curricula.target import Target
from stepladder.training.config import EvaluationConfig, TrainingConfig
from stepladder.training.presets import PRESETS

FITTED = "uniform"
"""The curriculum whose trainings a copy is fitted to."""

HELD_OUT_SEED = 1_000_000
"""From here on, seeds make levels that are not practised."""

FORMS: dict[str, int] = {}
"""Form of a method's rules, `FORM` by default: raise it if earlier trainings say nothing about the
method as it is now. A stored training of another form is left out, and made again."""

FORM = 2
"""Of trainings as this file describes them; form 1 had one evaluation, at the end."""

NUM_BINS = 12
"""Parts of a training of which practice is stored."""

EVALUATED_AT = (1 / 3, 1 / 2, 2 / 3, 5 / 6, 1.0)
"""Shares of a training after which held-out tasks are played."""


@dataclass(frozen=True, kw_only=True)
class World:
    """One kind of training."""

    name: str
    config: TrainingConfig
    """All but curriculum and seed; `total_steps` is the budget in env steps."""
    order: tuple[str, ...]
    """Labels, easiest first, as `staged` is told."""
    judged: tuple[str, ...]
    """Labels whose mean success on held-out tasks is what a curriculum is worth."""
    staged: StagedConfig
    seconds: float
    """What a training takes on one core, roughly."""
    more: tuple[tuple[str, CurriculumConfig], ...] = ()
    """Further curricula that only this world has."""
    held_out: Callable[[], tuple[Task, ...]] = tuple
    """Tasks that are evaluated; without any, what the game evaluates by itself."""

    @property
    def bin_steps(self) -> int:
        """Env steps of one part."""
        return self.config.total_steps // NUM_BINS

    @property
    def num_tasks(self) -> int:
        """Tasks per label."""
        source = self.config.task_source()
        return (source.num_tasks or 0) // len(self.order)

    @property
    def curricula(self) -> dict[str, CurriculumConfig]:
        """What is compared."""
        found: dict[str, CurriculumConfig] = {
            FITTED: UniformConfig(),
            "learnability": LearnabilityConfig(),
            "learnability alone": LearnabilityConfig(pooled=False, exploration=0.0),
            "learning-progress": LearningProgressConfig(),
            "level-replay": LevelReplayConfig(),
            "frontier": FrontierConfig(),
            "staged": self.staged,
            "advantage-bandit": AdvantageBanditConfig(),
            "learnability for the target": LearnabilityConfig(
                target=Target.from_words(self.judged)
            ),
        }
        # `auto` is `frontier` here, draw by draw.
        return found | dict(self.more)

    def shortened(self, share: float) -> "World":
        """Return the same with a part of the budget, to try whether all works."""
        steps = max(NUM_BINS * 1_000, int(self.config.total_steps * share))
        evaluation = replace(self.config.evaluation, num_games=4)
        config = replace(self.config, total_steps=steps, evaluation=evaluation)
        return replace(self, config=config, seconds=self.seconds * share)


def _stages(labels: tuple[str, ...]) -> StagedConfig:
    """Return one stage per label, as Ledge has them."""
    stages = tuple(Stage(name=label) for label in labels)
    # The stored trainings mix in the stage just before alone, which was the default then.
    return StagedConfig(stages=stages, threshold=0.75, window_episodes=200, mixing=PUBLISHED_MIXING)


# Ledge: generated levels of a platform game, in five stages of 200 levels.

LEDGE = World(
    name="ledge",
    config=replace(
        PRESETS["ledge"],
        total_steps=6_000_000,
        evaluation=replace(PRESETS["ledge"].evaluation, every_steps=None),
    ),
    order=tuple(PRESETS["ledge"].task_source().labels()),
    judged=("medium",),
    staged=_stages(tuple(PRESETS["ledge"].task_source().labels())),
    seconds=300.0,
)


# MiniGrid: levels that its seeds make, in six labels.

GRIDS = (
    "Empty-Random-6x6",
    "DoorKey-5x5",
    "KeyCorridorS3R1",
    "KeyCorridorS3R2",
    "KeyCorridorS3R3",
    "KeyCorridorS4R3",
)
"""Registered envs of MiniGrid; each is a label."""

NUM_GRIDS = 100
"""Levels of each label that are practised."""


def levels(names: tuple[str, ...], seeds: range) -> tuple[Task, ...]:
    """Return the levels that these seeds make in envs such as ``DoorKey-5x5``; names are labels."""
    return tuple(
        Task(f"{name} {seed}", name, {"env": f"MiniGrid-{name}-v0"}, seed=seed)
        for name in names
        for seed in seeds
    )


MINIGRID_AGENT = PPOConfig(
    learning_rate=1e-3,
    num_epochs=4,
    rollout_steps=4_096,
    minibatch_size=512,
    hidden_sizes=(128, 64),
    share_layers=True,
    activation="relu",
    entropy_coef=0.03,
)
"""With less entropy, an agent that practises one label alone settles on half a solution of it."""


MINIGRID = World(
    name="minigrid",
    config=TrainingConfig(
        env="prediction_levels:GridLevels",
        num_envs=32,
        num_workers=0,
        total_steps=600_000,
        tasks=levels(GRIDS, range(NUM_GRIDS)),
        agent=MINIGRID_AGENT,
        evaluation=EvaluationConfig(every_steps=None, num_games=40),
    ),
    order=GRIDS,
    judged=("KeyCorridorS3R3", "KeyCorridorS4R3"),
    staged=_stages(GRIDS),
    seconds=60.0,
    held_out=lambda: levels(GRIDS, range(HELD_OUT_SEED, HELD_OUT_SEED + 40)),
)


# Hockey: drills and whole games against two opponents.

RIVALRY: dict[str, dict[str, Any]] = {
    "shooting": {"mode": "TRAIN_SHOOTING", "opponent": "none"},
    "defence": {"mode": "TRAIN_DEFENSE", "opponent": "weak"},
    "shooting at weak": {"mode": "TRAIN_SHOOTING", "opponent": "weak"},
    "weak": {"mode": "NORMAL", "opponent": "weak"},
    "shooting at strong": {"mode": "TRAIN_SHOOTING", "opponent": "strong"},
    "strong": {"mode": "NORMAL", "opponent": "strong"},
}
"""What the games of each label are like."""

NUM_STARTS = 100
"""Games of each label that are practised; a seed says how each begins."""


def _games(first: int, count: int) -> tuple[Task, ...]:
    shaped = {"success": "win"}
    return tuple(
        Task(f"{label} {seed}", label, {**shaped, **params} | _success(label), seed=seed)
        for label, params in RIVALRY.items()
        for seed in range(first, first + count)
    )


def _success(label: str) -> dict[str, Any]:
    return {"success": "no_loss"} if label == "defence" else {}


HOCKEY_AGENT = PPOConfig(
    learning_rate=1e-3,
    gamma=0.98,
    num_epochs=4,
    rollout_steps=8_192,
    minibatch_size=1_024,
    hidden_sizes=(128, 128),
    share_layers=True,
    activation="relu",
    entropy_coef=0.01,
    normalise_observations=True,
)

HOCKEY_STEPS = 2_000_000

PHASES = PhasedConfig(
    phases=(
        Phase(
            name="drills",
            mixture={"shooting": 1.0, "defence": 1.0, "shooting at weak": 1.0},
            steps=HOCKEY_STEPS // 6,
        ),
        Phase(name="weak", mixture={"weak": 1.0}, steps=HOCKEY_STEPS // 3),
        Phase(name="both", mixture={"weak": 0.4, "strong": 0.6}),
    )
)
"""Drills, then the whole game, as the preset hockey-phases has it."""

HOCKEY = World(
    name="hockey",
    config=TrainingConfig(
        env="stepladder/Hockey-v0",
        env_kwargs={"actions": "discrete", "fineness": 1, "num_threads": 1},
        num_envs=128,
        total_steps=HOCKEY_STEPS,
        tasks=_games(0, NUM_STARTS),
        agent=HOCKEY_AGENT,
        reward_scale=0.1,
        evaluation=EvaluationConfig(every_steps=None, num_games=200),
    ),
    order=tuple(RIVALRY),
    judged=("weak", "strong"),
    staged=_stages(tuple(RIVALRY)),
    more=(("phased", PHASES),),
    seconds=70.0,
    held_out=lambda: _games(HELD_OUT_SEED, 100),
)

WORLDS: dict[str, World] = {world.name: world for world in (LEDGE, MINIGRID, HOCKEY)}
"""Every world by its name."""
