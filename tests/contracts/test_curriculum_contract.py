"""What every curriculum must do, whatever its method. A new one joins by an entry in `CASES`.

The stored traces are compared to the last draw. When a change of draws is meant, rewrite them with
``STEPLADDER_UPDATE_TRACES=1 pytest tests/contracts/test_curriculum_contract.py -k trace``, read
the diff, and say in the changelog that runs will differ.
"""

import copy
import json
import multiprocessing
import os
import pickle
import random
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import stepladder.curricula
from curricula.fake_learner import differences, live, play, record_for
from stepladder.curricula import (
    PUBLISHED_MIXING,
    AdvantageBandit,
    AdvantageBanditConfig,
    AncestorProgress,
    AncestorProgressConfig,
    Auto,
    AutoConfig,
    Curriculum,
    CurriculumConfig,
    DemotionRule,
    Draw,
    Explanation,
    Frontier,
    FrontierConfig,
    Learnability,
    LearnabilityConfig,
    LearningProgress,
    LearningProgressConfig,
    LevelReplay,
    LevelReplayConfig,
    Mixed,
    Mixture,
    MixtureConfig,
    Phase,
    Phased,
    PhasedConfig,
    PlayCounter,
    Ramp,
    Record,
    Snapshot,
    Staged,
    StagedConfig,
    TaskExplanation,
    Uniform,
    UniformConfig,
    record_array,
)
from stepladder.curricula.eviction import Evicting
from stepladder.errors import (
    BuildError,
    ConfigError,
    RecordError,
    SnapshotError,
    StepladderError,
    WrongProcessError,
)
from stepladder.plans.record import RECORD_DTYPE
from stepladder.tasks import (
    FloatRange,
    IntRange,
    ListSource,
    NumberedSource,
    ParameterSource,
    Source,
    Task,
    UnionSource,
)
from worked_examples import WorkedExample

EVICTING = Frontier | Learnability | LearningProgress | LevelReplay
LABELS = ("easy", "medium", "hard")
TRACES = Path(__file__).parent.parent / "data" / "traces"
NUM_TRACED = 200


def labelled(per_label: int, prefix: str = "") -> ListSource:
    """Make so many tasks per label; every label has two makers, one with few tasks, and a row."""
    return ListSource(
        Task(
            f"{prefix}{label}{i}",
            label,
            {"maker": "rare" if i == 0 else "common", "spot": {"x": i, "y": LABELS.index(label)}},
        )
        for label in LABELS
        for i in range(per_label)
    )


SMALL, LARGE = labelled(4), labelled(20)


def contributed() -> Any:
    """Return the worked example of a curriculum in CONTRIBUTING.md."""
    (code,) = WorkedExample.read("curriculum").new_files.values()
    module = types.ModuleType("contributed_curriculum")
    sys.modules[module.__name__] = module
    exec(compile(code, "CONTRIBUTING.md", "exec"), vars(module))
    return module.Rarest


@dataclass(frozen=True)
class Case:
    """How to build one curriculum; a pool with a capacity has tasks to replace others by."""

    kind: type[Curriculum]
    config: CurriculumConfig
    source: Source = SMALL
    capacity: int | None = None

    def make(self, *, seed: int = 7, source: Source | None = None, **changes: Any) -> Any:
        kind: Any = self.kind
        config = replace(self.config, **changes)
        return kind(source or self.source, config, seed=seed, capacity=self.capacity)

    @property
    def can_replace(self) -> bool:
        return self.capacity is not None


MIXTURE = MixtureConfig(weights={"easy": 3.0, "hard": 1.0})
STAGES = StagedConfig(
    stages=LABELS,
    threshold=0.5,
    min_episodes=20,
    window_episodes=20,
    check_interval_episodes=5,
    demotion=DemotionRule(threshold=0.3, min_episodes=15),
)
PUBLISHED = replace(STAGES, mixing=PUBLISHED_MIXING, confidence_z=0.5)
BALANCED = replace(STAGES, balance_by="maker", ignore_truncated=True)
PROGRESS = LearningProgressConfig(
    pooled=False,
    novice_plays=4,
    fast_halflife_episodes=3,
    slow_halflife_episodes=15,
    noise_z=0.5,
    eviction_plays=8,
)
BY_RETURN = replace(PROGRESS, signal="return", return_low=-0.5, return_high=1.5)
SEED = replace(AncestorProgressConfig.seed_defaults(), memory=4)
MATURE = replace(AncestorProgressConfig.mature_defaults(), min_samples_for_lp=3)
LEARNABLE = LearnabilityConfig(halflife_episodes=5, prior_failures=2.0, eviction_plays=8)
KEEN = replace(LEARNABLE, signal="return", return_low=-0.5, return_high=1.5, exponent=3.0)
REPLAY = LevelReplayConfig(temperature=0.5, reranked_per_episode=1, eviction_plays=6)
REPLAY_BY_RETURN = replace(
    REPLAY,
    signal="return",
    return_low=-0.5,
    return_high=1.5,
    transform="proportional",
    schedule="fixed",
    min_seen=0.3,
    score_weight=0.5,
)
ACCEL = replace(REPLAY, editing=0.7, staleness=0.3, changes_per_edit=2)


def editable(seed: int, num_tasks: int = 60) -> ParameterSource:
    """Make a source that can edit its tasks."""
    return ParameterSource(
        {"kind": ["easy", "medium", "hard"], "gap": FloatRange(0.5, 3.0), "steps": IntRange(1, 40)},
        num_tasks=num_tasks,
        seed=seed,
        label_from="kind",
        # Tests that interrupt at every line count on the same lines each time.
        cache_size=0,
    )


EDITABLE, ALSO_EDITABLE = (editable(seed) for seed in (0, 1))
FRONTIER = FrontierConfig(
    halflife_episodes=3.0,
    trial_episodes=8,
    probing=0.4,
    rehearsal=0.2,
    patience_rounds=2.0,
    eviction_plays=6,
)
NEAR_FIRST = replace(FRONTIER, features=("spot.x", "spot.y"), num_neighbors=1)
PHASES = PhasedConfig(
    phases=(
        Phase(
            name="warm-up",
            mixture={"easy": 1.0, "medium": 2.0},
            episodes=40,
            settings={
                "gravity": Ramp(start=0.0, end=1.0, ramp_episodes=30),
                "opponent": Mixed(("weak", "strong")),
            },
        ),
        Phase(name="climb", curriculum=STAGES, steps=400),
        Phase(name="play", curriculum=PROGRESS),
    )
)
NESTED = PhasedConfig(
    phases=(
        Phase(
            name="school",
            curriculum=PhasedConfig(
                phases=(
                    Phase(name="first", curriculum=MIXTURE, episodes=30),
                    Phase(name="second", curriculum=MATURE, success=0.5, min_episodes=20),
                    Phase(name="third", curriculum=PUBLISHED),
                )
            ),
            episodes=150,
        ),
        Phase(name="life", curriculum=PROGRESS),
    )
)
TO_THE_FRONTIER = PhasedConfig(
    phases=(
        Phase(name="look around", curriculum=UniformConfig(), episodes=40),
        Phase(name="near", curriculum=NEAR_FIRST, episodes=60),
        Phase(name="far", curriculum=FRONTIER),
    )
)

TO_ACCEL = PhasedConfig(
    phases=(
        Phase(name="climb", curriculum=replace(STAGES, min_episodes=30), episodes=40),
        Phase(name="edit", curriculum=ACCEL),
    )
)

RAREST = contributed()

BANDIT = AdvantageBanditConfig(scored_by="deviation", window_episodes=20)
BANDIT_BY_RETURN = AdvantageBanditConfig(
    scored_by="deviation", signal="return", return_low=-0.5, return_high=1.5, temperature=0.5
)

CASES = {
    "contributed": Case(RAREST, RAREST.Config()),
    "contributed_replacing": Case(RAREST, RAREST.Config(power=2.0), LARGE, 12),
    "uniform": Case(Uniform, UniformConfig()),
    "uniform_weighted": Case(
        Uniform,
        UniformConfig(exploration=0.2),
        UnionSource([(NumberedSource(3, "easy", "a"), 1.0), (NumberedSource(9, "hard", "b"), 2.0)]),
    ),
    "uniform_replacing": Case(Uniform, UniformConfig(), LARGE, 12),
    "mixture": Case(Mixture, MIXTURE),
    "mixture_replacing": Case(Mixture, MIXTURE, LARGE, 12),
    "staged": Case(Staged, STAGES),
    "staged_published": Case(Staged, PUBLISHED),
    "staged_balanced": Case(Staged, BALANCED),
    "staged_replacing": Case(Staged, STAGES, LARGE, 12),
    "progress": Case(LearningProgress, PROGRESS),
    "progress_evicting": Case(LearningProgress, PROGRESS, LARGE, 12),
    "progress_by_return": Case(LearningProgress, BY_RETURN, NumberedSource(10**12), 12),
    **{
        name: Case(kind, replace(config, pooled=True), source, capacity)
        for name, kind, config, source, capacity in (
            ("progress_pooled", LearningProgress, PROGRESS, SMALL, None),
            ("progress_pooled_evicting", LearningProgress, PROGRESS, LARGE, 12),
            ("progress_pooled_by_return", LearningProgress, BY_RETURN, LARGE, 12),
            ("level_replay_pooled", LevelReplay, REPLAY, SMALL, None),
            ("level_replay_pooled_evicting", LevelReplay, REPLAY, LARGE, 12),
            ("level_replay_pooled_by_return", LevelReplay, REPLAY_BY_RETURN, LARGE, 12),
        )
    },
    "ancestor_seed": Case(AncestorProgress, SEED),
    "ancestor_seed_evicting": Case(AncestorProgress, SEED, LARGE, 12),
    "ancestor_mature": Case(AncestorProgress, MATURE),
    "ancestor_mature_evicting": Case(AncestorProgress, MATURE, LARGE, 12),
    "learnability": Case(Learnability, LEARNABLE),
    "learnability_alone": Case(Learnability, replace(LEARNABLE, pooled=False, exploration=0.0)),
    "learnability_evicting": Case(Learnability, LEARNABLE, LARGE, 12),
    "learnability_by_return": Case(Learnability, KEEN, NumberedSource(10**12), 12),
    "level_replay": Case(LevelReplay, REPLAY),
    "level_replay_evicting": Case(LevelReplay, REPLAY, LARGE, 12),
    "level_replay_by_return": Case(LevelReplay, REPLAY_BY_RETURN, NumberedSource(10**12), 12),
    "accel": Case(LevelReplay, ACCEL, EDITABLE, 12),
    "advantage_bandit": Case(AdvantageBandit, BANDIT),
    "advantage_bandit_replacing": Case(AdvantageBandit, BANDIT, LARGE, 12),
    "advantage_bandit_by_return": Case(AdvantageBandit, BANDIT_BY_RETURN, LARGE, 12),
    **{
        f"{name}_of_any_return": Case(kind, replace(config, signal="return"), LARGE, 12)
        for name, kind, config in (
            ("progress", LearningProgress, PROGRESS),
            ("ancestor", AncestorProgress, MATURE),
            ("learnability", Learnability, LEARNABLE),
            ("level_replay", LevelReplay, REPLAY),
            ("advantage_bandit", AdvantageBandit, BANDIT),
        )
    },
    "frontier": Case(Frontier, FRONTIER),
    "frontier_features": Case(Frontier, NEAR_FIRST),
    "frontier_evicting": Case(Frontier, FRONTIER, LARGE, 12),
    "frontier_weighted": Case(
        Frontier,
        FRONTIER,
        UnionSource([(NumberedSource(3, "easy", "a"), 1.0), (NumberedSource(9, "hard", "b"), 2.0)]),
    ),
    "frontier_alone": Case(Frontier, replace(FRONTIER, pooled=False)),
    "auto": Case(Auto, AutoConfig()),
    "auto_replacing": Case(Auto, AutoConfig(exploration=0.1), LARGE, 12),
    "phased": Case(Phased, PHASES),
    "phased_evicting": Case(Phased, PHASES, LARGE, 12),
    "phased_nested": Case(Phased, NESTED),
    "phased_nested_evicting": Case(Phased, NESTED, LARGE, 12),
    "phased_frontier": Case(Phased, TO_THE_FRONTIER),
    "phased_accel": Case(Phased, TO_ACCEL, EDITABLE, 12),
}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
every_replacing_case = pytest.mark.parametrize(
    "case",
    [case for case in CASES.values() if case.can_replace],
    ids=[name for name, case in CASES.items() if case.can_replace],
)
every_fixed_case = pytest.mark.parametrize(
    "case",
    [case for case in CASES.values() if not case.can_replace],
    ids=[name for name, case in CASES.items() if not case.can_replace],
)


def live_with_incidents(curriculum: Any, num_episodes: int) -> None:
    """Play; on the way a task turns out unbuildable and another one is replaced by hand."""
    first, second = min(50, num_episodes), min(60, num_episodes) - min(50, num_episodes)
    live(curriculum, first)
    if first == 50:
        curriculum.quarantine(1, int(curriculum.pool.generations[1]), "no such map")
    live(curriculum, second)
    if second == 10 and curriculum.pool.can_replace and curriculum.config != BALANCED:
        curriculum.replace(2)
    live(curriculum, num_episodes - first - second)


# The list itself.


def test_every_curriculum_is_in_the_list():
    exported = [getattr(stepladder.curricula, name) for name in stepladder.curricula.__all__]
    methods = {
        thing for thing in exported if isinstance(thing, type) and issubclass(thing, Curriculum)
    }
    methods -= {Curriculum, Evicting, PlayCounter}
    assert methods | {RAREST} == {case.kind for case in CASES.values()}


@every_case
def test_the_life_that_the_others_test_is_eventful(case: Case):
    curriculum = case.make()
    probs = live(curriculum, 300).probs
    learns = not isinstance(curriculum, Uniform | Mixture)
    assert (len({tuple(row) for row in probs}) > 5) == learns
    if hasattr(curriculum, "history"):
        assert len(curriculum.history) >= 1
    if isinstance(curriculum, Evicting):
        assert (curriculum.num_evicted > 2) == case.can_replace


# Probabilities and draws.


@every_case
def test_probs_are_finite_and_sum_to_one_at_any_time(case: Case):
    curriculum = case.make()
    probs = np.array([curriculum.probs().tolist(), *live(curriculum, 300).probs])
    assert probs.shape == (301, 12)
    assert np.all(np.isfinite(probs))
    assert np.all(probs >= 0.0)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@every_case
def test_as_many_are_drawn_as_are_asked_for(case: Case):
    for k in (0, 1, 7, 1000):
        curriculum = case.make()
        live(curriculum, 30)
        draws = curriculum.draw(k)
        assert len(draws) == k
        assert [draw.episode_index for draw in draws] == list(range(30, 30 + k))
        assert all(draw.task_id == curriculum.pool.task_ids[draw.slot] for draw in draws)
        assert all(draw.generation == curriculum.pool.generations[draw.slot] for draw in draws)
        assert all(draw.plan_version == curriculum.plan.version for draw in draws)


@every_case
def test_a_negative_number_of_draws_is_refused(case: Case):
    curriculum = case.make()
    before = curriculum.snapshot()
    with pytest.raises(ConfigError, match="-1"):
        curriculum.draw(-1)
    assert differences(before, curriculum.snapshot()) == []


@every_case
def test_draws_follow_probs_and_impossible_slots_are_never_drawn(case: Case):
    for num_episodes in (0, 45, 170):
        curriculum = case.make()
        live(curriculum, num_episodes)
        probs, num_draws = curriculum.probs(), 100_000
        counts = np.bincount(curriculum.draw_batch(num_draws)["slot"], minlength=len(probs))
        spread = np.sqrt(num_draws * probs * (1.0 - probs))
        assert np.all(np.abs(counts - num_draws * probs) <= 4.5 * spread)
        assert np.all(counts[probs == 0.0] == 0)


@every_case
def test_the_same_seed_draws_the_same_and_another_seed_differs(case: Case):
    one, same, other = (live(case.make(seed=seed), 120) for seed in (7, 7, 8))
    assert one == same
    assert [draw.slot for draw in one.draws] != [draw.slot for draw in other.draws]
    assert {draw.seed for draw in one.draws}.isdisjoint(draw.seed for draw in other.draws)


@every_case
def test_one_draw_at_a_time_equals_many_at_once(case: Case):
    one, many = case.make(), case.make()
    live(one, 60), live(many, 60)
    assert [one.draw_one() for _ in range(20)] == many.draw(20)
    assert differences(one.snapshot(), many.snapshot()) == []


@every_case
def test_the_global_generators_are_untouched(case: Case, tmp_path: Path):
    legacy: Any = np.random.get_state()  # noqa: NPY002, this is what must not change
    python = random.getstate()
    curriculum = case.make()
    live_with_incidents(curriculum, 120)
    path = curriculum.snapshot().save(tmp_path / "state.npz")
    case.make().restore(Snapshot.load(path))
    str(curriculum.explain()), str(curriculum.explain(0))
    after: Any = np.random.get_state()  # noqa: NPY002, this is what must not change
    assert random.getstate() == python
    assert after[0] == legacy[0]
    assert np.array_equal(after[1], legacy[1])
    assert after[2:] == legacy[2:]


@every_case
def test_every_active_task_has_its_share_of_exploration(case: Case):
    curriculum = case.make(exploration=0.3)
    live(curriculum, 30)
    if not case.can_replace:
        curriculum.quarantine(1, 0, "no such map")
    probs = np.array(live(curriculum, 250).probs)
    active = np.flatnonzero(probs[-1] > 0)
    assert len(active) == (12 if case.can_replace else 11)
    assert np.all(probs[:, active] >= 0.3 / len(active) - 1e-15)


@every_case
def test_with_nothing_but_exploration_all_tasks_are_alike(case: Case):
    curriculum = case.make(exploration=1.0)
    np.testing.assert_allclose(live(curriculum, 100).probs, 1.0 / 12.0, rtol=1e-12)


# No obsession.


def obsessed(case: Case, max_share: float | None) -> Any:
    """Return a curriculum over 1,000 tasks of which one alone succeeds now and then."""
    source = case.source
    if isinstance(source, UnionSource):
        source = UnionSource(
            [(NumberedSource(3, prefix="a"), 1.0), (NumberedSource(997, prefix="b"), 2.0)]
        )
    elif isinstance(source, ListSource):
        source = labelled(340 if case.can_replace else 334)
    elif isinstance(source, ParameterSource):
        source = editable(7, 1_020)
    kind, config = case.kind, replace(case.config, max_share=max_share)
    curriculum: Any = kind(source, config, seed=7, capacity=1000 if case.can_replace else None)
    for _ in range(6):
        every_slot = range(curriculum.pool.num_slots)
        curriculum.observe([record_for(curriculum, slot, 0.0) for slot in every_slot])
    for success in (1.0, 0.0, 0.5, 1.0) * 5:
        changes = {"episode_return": 2.0 * success - 0.5}
        curriculum.observe(record_for(curriculum, 400, success, **changes))
    return curriculum


@every_case
def test_no_task_of_a_large_pool_gets_more_than_its_largest_share(case: Case):
    limit = None if case.config.limits_shares and case.kind is not Phased else 0.05
    curriculum = obsessed(case, limit)
    probs = curriculum.probs()
    assert probs.sum() == pytest.approx(1.0, abs=1e-9)
    # Its part of what is left over comes on top.
    assert probs.max() <= 0.05 + 0.95 / 1000 + 1e-12
    counts = np.bincount(curriculum.draw_batch(100_000)["slot"], minlength=len(probs))
    spread = np.sqrt(100_000 * probs * (1.0 - probs))
    assert np.all(np.abs(counts - 100_000 * probs) <= 5.5 * spread + 1.0)


@pytest.mark.parametrize("name", ["level_replay", "level_replay_by_return", "progress"])
def test_without_a_limit_one_task_gets_more(name: str):
    assert obsessed(CASES[name], 1.0).probs().max() > 0.06


@every_case
def test_small_pools_have_no_limit_unless_it_is_set(case: Case):
    free, bound = case.make(), case.make(max_share=0.01)
    assert case.config.largest_share(len(free.probs())) == 1.0
    live(bound, 100)
    assert bound.probs().max() <= 0.01 + 0.99 / len(bound.plan.active) + 1e-12


# What the agent is for.

every_targeted_case = pytest.mark.parametrize(
    "case",
    [case for case in CASES.values() if case.config.takes_target],
    ids=[name for name, case in CASES.items() if case.config.takes_target],
)


def aim_of(case: Case) -> Any:
    labels = case.source.labels()
    return {labels[-1]: 2.0, labels[0]: 1.0} if len(labels) > 1 else labels


@every_targeted_case
def test_draws_follow_probs_with_a_target_and_a_limit(case: Case):
    for max_share in (None, 0.15):
        curriculum = case.make(target=aim_of(case), max_share=max_share)
        live(curriculum, 120)
        probs, num_draws = curriculum.probs(), 100_000
        assert probs.sum() == pytest.approx(1.0, abs=1e-12)
        told = [cast(TaskExplanation, curriculum.explain(slot)).prob for slot in range(len(probs))]
        assert told == pytest.approx(probs.tolist(), abs=1e-14)
        counts = np.bincount(curriculum.draw_batch(num_draws)["slot"], minlength=len(probs))
        spread = np.sqrt(num_draws * probs * (1.0 - probs))
        assert np.all(np.abs(counts - num_draws * probs) <= 4.5 * spread)


@every_targeted_case
def test_a_target_is_followed_once_per_record_whatever_the_batches(case: Case):
    one, other = (case.make(target=aim_of(case)) for _ in range(2))
    method, twin = one.in_force(), other.in_force()
    records = [record_for(one, slot, slot % 2, episode_return=0.0) for slot in range(12)]
    for record in records:
        one.observe(record)
    other.observe(records)
    np.testing.assert_equal(method.target_success, twin.target_success)
    assert (method.totals["target"] == twin.totals["target"]).all()
    # A record without success says nothing about it; auto takes it for a failure.
    before = method.target_success
    if not one.needs_success and not isinstance(one, Auto):
        one.observe(record_for(one, 11, float("nan")))
        np.testing.assert_equal(method.target_success, before)


@every_targeted_case
def test_a_target_survives_a_snapshot(case: Case):
    curriculum, other = (case.make(target=aim_of(case)) for _ in range(2))
    live_with_incidents(curriculum, 120)
    other.restore(curriculum.snapshot())
    np.testing.assert_array_equal(curriculum.probs(), other.probs())
    assert live(curriculum, 40) == live(other, 40)
    assert differences(curriculum.snapshot(), other.snapshot()) == []


@every_case
def test_a_target_is_told_or_refused(case: Case):
    if case.config.takes_target:
        curriculum = case.make(target=case.source.labels()[:1])
        # The first phase may be a mixture, which takes none.
        is_told = curriculum.in_force().config.target is not None
        line = f"Target: {case.source.labels()[0]}; not played yet"
        assert (line in str(curriculum.explain())) == is_told
        with pytest.raises(ConfigError, match="target names 'hrad'"):
            case.make(target="hrad")
    else:
        with pytest.raises(ConfigError, match="whose own settings say what is drawn"):
            case.make(target=case.source.labels()[:1])


# Observing.

BAD_NUMBERS = [
    ({"slot": -1}, "slot -1"),
    ({"slot": 12}, "slot 12"),
    ({"slot": 10**15}, "slot 1000000000000000"),
    ({"slot": 10**30}, "not a number"),
    ({"length": -1}, "length -1"),
    ({"episode_return": np.nan}, "return nan"),
    ({"episode_return": np.inf}, "return inf"),
    ({"episode_return": -np.inf}, "return -inf"),
    ({"success": 1.5}, r"success 1\.5"),
    ({"success": -0.01}, r"success -0\.01"),
    ({"success": np.inf}, "success inf"),
    ({"success": "often"}, "often"),
    ({"outcome": 2}, "outcome 2"),
    ({"outcome": -1}, "outcome -1"),
    ({"outcome": 2, "success": np.nan}, "outcome 2"),
]


@every_case
def test_a_bad_record_is_refused_and_nothing_has_changed(case: Case):
    for num_good in (0, 3):
        curriculum = case.make()
        live(curriculum, 45)
        good = [play(draw) for draw in curriculum.draw(num_good)]
        before = curriculum.snapshot()
        for changes, words in BAD_NUMBERS:
            bad = record_for(curriculum, 0, 1.0)._replace(**changes)
            with pytest.raises(RecordError, match=words) as refusal:
                curriculum.observe([*good, bad])
            assert isinstance(refusal.value, StepladderError)
            if "not a number" not in str(refusal.value):
                assert f"record {num_good} of {num_good + 1}" in str(refusal.value)
            assert differences(before, curriculum.snapshot()) == [], changes
        live(curriculum, 20)


@every_case
def test_a_single_bad_record_is_refused_too(case: Case):
    curriculum = case.make()
    before = curriculum.snapshot()
    for changes, words in BAD_NUMBERS:
        with pytest.raises(RecordError, match=words):
            curriculum.observe(record_for(curriculum, 0, 1.0)._replace(**changes))
    assert differences(before, curriculum.snapshot()) == []


@every_case
def test_a_missing_success_is_refused_exactly_where_it_is_needed(case: Case):
    for unknown in (np.nan, None):
        curriculum = case.make()
        record = record_for(curriculum, 0, 1.0)._replace(success=unknown)
        before = curriculum.snapshot()
        if curriculum.needs_success:
            for records in (record, [record_for(curriculum, 0, 1.0), record]):
                with pytest.raises(RecordError, match="success"):
                    curriculum.observe(records)
            assert differences(before, curriculum.snapshot()) == []
        else:
            curriculum.observe(record)
            assert curriculum.num_observed == 1


def test_what_needs_no_success_is_what_does_not_look_at_it():
    careless = {name for name, case in CASES.items() if not case.make().needs_success}
    assert careless == {
        "contributed",
        "contributed_replacing",
        "uniform",
        "uniform_weighted",
        "uniform_replacing",
        "mixture",
        "mixture_replacing",
        "progress_by_return",
        "learnability_by_return",
        "level_replay_by_return",
        "advantage_bandit_by_return",
        "progress_of_any_return",
        "ancestor_of_any_return",
        "learnability_of_any_return",
        "level_replay_of_any_return",
        "advantage_bandit_of_any_return",
        "progress_pooled_by_return",
        "level_replay_pooled_by_return",
        "auto",
        "auto_replacing",
    }


@every_case
def test_what_is_no_record_is_refused(case: Case):
    curriculum = case.make()
    record = record_for(curriculum, 0, 1.0)
    before = curriculum.snapshot()
    fields = [entry for entry in RECORD_DTYPE.descr if entry[0] != "tick"]
    not_records: list[Any] = [
        np.zeros(3),
        np.zeros(3, dtype=np.dtype(fields)),
        record_array([record, record]).reshape(2, 1),
        record_array([record])[0],
        [(1, 2, 3)],
        ["record"],
        [None],
        None,
        5,
    ]
    for wrong in not_records:
        with pytest.raises(RecordError):
            curriculum.observe(wrong)
    assert differences(before, curriculum.snapshot()) == []


@every_case
def test_an_empty_batch_teaches_nothing(case: Case):
    curriculum = case.make()
    live(curriculum, 45)
    before = curriculum.snapshot()
    curriculum.observe([])
    curriculum.observe(np.zeros(0, dtype=RECORD_DTYPE))
    assert differences(before, curriculum.snapshot()) == []


@every_case
def test_records_are_counted_with_their_steps(case: Case):
    curriculum = case.make()
    curriculum.observe([record_for(curriculum, slot, 1.0, length=slot) for slot in range(12)])
    assert (curriculum.num_observed, curriculum.num_steps) == (12, 66)
    assert curriculum.num_orphaned == 0


def without_versions(curriculum: Any) -> Snapshot:
    """Take a snapshot in which plans that differ only in their number are alike."""
    snapshot = curriculum.snapshot()
    state = json.loads(json.dumps(snapshot.state))

    def forget(entry: Any) -> None:
        for key, value in entry.items() if isinstance(entry, dict) else enumerate(entry):
            if key in ("version", "plan_version"):
                entry[key] = None
            elif isinstance(value, dict | list):
                forget(value)

    forget(state)
    arrays = {
        name: array for name, array in snapshot.arrays.items() if not name.endswith("versions")
    }
    return Snapshot(state, arrays)


@every_case
def test_a_batch_teaches_the_same_as_its_records_one_by_one(case: Case):
    for as_array in (False, True):
        # Fewer than a phase lasts and than an eviction takes: those two wait for a batch's end.
        together, apart = case.make(), case.make()
        live(together, 3), live(apart, 3)
        records = [play(draw, plan_version=10**6) for draw in together.draw(25)]
        apart.draw(25)
        together.observe(record_array(records) if as_array else records)
        for record in records:
            apart.observe(record)
        assert not isinstance(together, EVICTING) or together.num_evicted == 0
        assert differences(without_versions(together), without_versions(apart)) == []
        np.testing.assert_array_equal(together.probs(), apart.probs())


@every_case
def test_a_report_teaches_the_same_as_its_record(case: Case):
    reported, batched, observed = case.make(), case.make(), case.make()
    for _ in range(100):
        draw = reported.draw_one()
        record = play(draw)
        results = (record.success, record.episode_return, record.length, record.truncated)
        reported.report(draw, *results)
        batched.report_batch(batched.draw_batch(1), *results)
        observed.draw(1)
        observed.observe(record)
    assert differences(reported.snapshot(), observed.snapshot()) == []
    assert differences(batched.snapshot(), observed.snapshot()) == []


@every_case
def test_a_bad_report_is_refused_and_nothing_has_changed(case: Case):
    curriculum = case.make()
    draw, draws = curriculum.draw_one(), curriculum.draw_batch(3)
    before = curriculum.snapshot()
    bad: list[tuple[Any, ...]] = [
        (1.5,),
        ("often",),
        (1.0, np.nan),
        (1.0, "much"),
        (1.0, 0.0, -1),
        (1.0, 0.0, "long"),
    ]
    bad += [(np.nan,), (None,)] if curriculum.needs_success else []
    for results in bad:
        with pytest.raises(RecordError):
            curriculum.report(draw, *results)
        with pytest.raises(RecordError):
            curriculum.report_batch(draws, *results)
    with pytest.raises(RecordError):
        curriculum.report(draw._replace(slot=12), 1.0)
    with pytest.raises(RecordError, match="3 draws"):
        curriculum.report_batch(draws, [1.0, 0.0])
    not_draws: list[Any] = [[draw], np.zeros(3, dtype=np.int64), draws.reshape(3, 1), None]
    for wrong in not_draws:
        with pytest.raises(RecordError, match="what `draw_batch` returned"):
            curriculum.report_batch(wrong, 1.0)
    assert differences(before, curriculum.snapshot()) == []


# Tasks that come and go.


@every_replacing_case
def test_a_result_of_a_replaced_task_is_credited_to_nobody(case: Case):
    curriculum = case.make()
    live(curriculum, 15)
    late = play(curriculum.draw(1)[0])
    slot, task_id = late.slot, int(curriculum.pool.task_ids[late.slot])
    assert curriculum.replace(slot) == late.generation + 1
    assert curriculum.pool.task_ids[slot] != task_id
    # The ancestor writes all weights anew at the next record, whatever that is.
    curriculum.observe(late)
    before, orphaned = curriculum.explain(slot), curriculum.num_orphaned
    probs, observed = curriculum.probs(), curriculum.num_observed
    for _ in range(10):
        curriculum.observe(late)
    assert curriculum.num_orphaned == orphaned + 10
    assert curriculum.num_observed == observed + 10
    assert curriculum.explain(slot) == before
    np.testing.assert_array_equal(curriculum.probs(), probs)


@every_replacing_case
def test_a_task_put_in_by_hand_is_there_and_in_play(case: Case):
    curriculum = case.make(exploration=0.1)
    live(curriculum, 20)
    label = curriculum.pool.source.label(int(curriculum.pool.task_ids[5]))
    newcomer = next(
        task_id
        for task_id in range(60)
        if not curriculum.pool.contains(task_id) and curriculum.pool.source.label(task_id) == label
    )
    curriculum.replace(5, newcomer)
    assert curriculum.pool.task_ids[5] == newcomer
    assert curriculum.probs()[5] > 0
    assert newcomer in {draw.task_id for draw in curriculum.draw(2000)}


@every_fixed_case
def test_a_quarantined_task_is_never_drawn_and_the_others_share(case: Case):
    curriculum = case.make()
    live(curriculum, 30)
    probs = curriculum.probs()
    slot = int(np.argmax(probs))
    late = record_for(curriculum, slot, 1.0)
    assert curriculum.quarantine(slot, 0, "no such map")
    assert not curriculum.quarantine(slot, 0, "no such map")
    assert curriculum.num_quarantined == 1
    assert curriculum.is_quarantined(slot)
    entry = curriculum.quarantined[0]
    assert (entry.slot, entry.reason, entry.replaced) == (slot, "no such map", False)
    assert entry.task == curriculum.pool.task(slot).name
    after = curriculum.probs()
    assert after[slot] == 0.0
    assert np.all(after[(probs > 0) & (np.arange(12) != slot)] > 0)
    np.testing.assert_allclose(after.sum(), 1.0, rtol=1e-12)
    # Late results that would make it interesting must not bring it back.
    curriculum.observe([late] * 10 + [late._replace(success=0.0)] * 5)
    lives = live(curriculum, 250)
    assert slot not in {draw.slot for draw in lives.draws}
    assert np.all(np.array(lives.probs)[:, slot] == 0.0)
    assert "quarantined" in curriculum.explain(slot).reason
    assert "1 quarantined" in str(curriculum.explain())


@every_fixed_case
def test_when_nothing_is_left_to_draw_it_says_so(case: Case):
    curriculum = case.make()
    live(curriculum, 30)

    def lose_every_task() -> None:
        for slot in range(12):
            curriculum.quarantine(slot, 0, "no such map")
            curriculum.draw(1)

    with pytest.raises(BuildError, match="could not build"):
        lose_every_task()


@every_replacing_case
def test_an_unbuildable_task_makes_room_for_another(case: Case):
    curriculum = case.make(exploration=0.1)
    live(curriculum, 30)
    slot, generation = 3, int(curriculum.pool.generations[3])
    label, name = curriculum.pool.task(3).label, curriculum.pool.task(3).name
    assert curriculum.quarantine(slot, generation, "no such map")
    assert not curriculum.quarantine(slot, generation, "no such map")
    assert curriculum.quarantined[0].replaced
    assert curriculum.num_quarantined == 0
    assert curriculum.pool.generations[slot] == generation + 1
    assert curriculum.pool.task(slot).name != name
    assert curriculum.probs()[slot] > 0
    if curriculum.groups_by_label or isinstance(curriculum, Phased):
        assert curriculum.pool.task(slot).label == label


@every_case
def test_groups_of_slots_follow_labels_only_if_the_curriculum_says_so(case: Case):
    # Otherwise a task that is replaced by one with another label would stay in its old group.
    for _, method in case.make().all_methods():
        splits = any(split.num_groups > 1 for split in method._groupings())
        assert splits <= method.groups_by_label or isinstance(method, Phased)


@every_case
def test_a_slot_that_does_not_exist_is_refused(case: Case):
    curriculum = case.make()
    before = curriculum.snapshot()
    for slot in (-1, 12):
        with pytest.raises(RecordError, match=f"slot {slot}"):
            curriculum.explain(slot)
        with pytest.raises(RecordError, match=f"slot {slot}"):
            curriculum.quarantine(slot, 0, "no such map")
    assert differences(before, curriculum.snapshot()) == []


# Saving and resuming.


@every_case
def test_a_restored_curriculum_has_the_same_future(case: Case, tmp_path: Path):
    for moment in (0, 7, 58, 75, 170, 290):
        original = case.make()
        live_with_incidents(original, moment)
        saved = original.snapshot()
        resumed = case.make()
        live(resumed, 13)
        resumed.restore(Snapshot.load(saved.save(tmp_path / "state.npz")))
        assert differences(saved, resumed.snapshot()) == []
        np.testing.assert_array_equal(original.probs(), resumed.probs())
        assert original.explain() == resumed.explain()
        assert live(original, 120) == live(resumed, 120)
        assert differences(original.snapshot(), resumed.snapshot()) == []
        assert original.explain() == resumed.explain()
        if hasattr(original, "history"):
            assert original.history == resumed.history
        assert original.quarantined == resumed.quarantined


@every_case
def test_a_snapshot_is_plain_json_and_arrays(case: Case, tmp_path: Path):
    curriculum = case.make()
    live_with_incidents(curriculum, 100)
    snapshot = curriculum.snapshot()
    assert json.loads(json.dumps(snapshot.state, allow_nan=False)) == snapshot.state
    with np.load(snapshot.save(tmp_path / "state.npz"), allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
    assert differences(snapshot, Snapshot.load(tmp_path / "state.npz")) == []


@every_case
def test_a_snapshot_does_not_change_with_its_curriculum(case: Case):
    curriculum = case.make()
    live(curriculum, 30)
    snapshot = curriculum.snapshot()
    kept = copy.deepcopy(snapshot)
    live_with_incidents(curriculum, 100)
    assert differences(snapshot, kept) == []


def assert_refused(curriculum: Any, snapshot: Snapshot, words: str | None = None) -> None:
    assert_all_refused(curriculum, [snapshot], curriculum.snapshot(), words)


def assert_all_refused(
    curriculum: Any, snapshots: Iterable[Snapshot], before: Snapshot, words: str | None = None
) -> None:
    """Let a curriculum refuse snapshots and be as `before`; looking at it takes longest."""
    probs = curriculum.probs()
    for snapshot in snapshots:
        with pytest.raises(SnapshotError, match=words):
            curriculum.restore(snapshot)
    assert differences(before, curriculum.snapshot()) == []
    np.testing.assert_array_equal(curriculum.probs(), probs)


@every_case
def test_a_snapshot_that_does_not_fit_is_refused_by_name(case: Case):
    curriculum = case.make()
    live_with_incidents(curriculum, 100)
    assert_refused(curriculum, case.make(seed=8).snapshot(), "seed was 8 and is now 7")
    other = case.make(exploration=0.123).snapshot()
    assert_refused(curriculum, other, r"config\.exploration was 0\.123")
    stranger = next(entry for entry in CASES.values() if entry.kind is not case.kind)
    name = f"was '{stranger.kind.__name__}' and is now '{case.kind.__name__}'"
    assert_refused(curriculum, stranger.make().snapshot(), name)
    assert_refused(curriculum, Snapshot({}), "curriculum was None")


@every_case
def test_a_snapshot_of_other_tasks_is_refused_by_name(case: Case):
    curriculum = case.make()
    live(curriculum, 40)
    if isinstance(case.source, ListSource):
        per_label = (case.source.num_tasks or 0) // 3
        renamed = case.make(source=labelled(per_label, prefix="other/")).snapshot()
        assert_refused(curriculum, renamed, "another task set")
        more = case.make(source=labelled(per_label + 1)).snapshot()
        assert_refused(curriculum, more, "another task set .*number of tasks")
    else:
        others = ALSO_EDITABLE if case.source is EDITABLE else NumberedSource(12)
        other = case.make(source=others).snapshot()
        assert_refused(curriculum, other, "another task set")


@every_replacing_case
def test_a_snapshot_with_another_number_of_slots_is_refused(case: Case):
    curriculum = case.make()
    live(curriculum, 40)
    assert_refused(curriculum, replace(case, capacity=13).make().snapshot(), "13")


tried: set[Any] = set()
"""Places in snapshots that were damaged for a case; no other one of its method tries them again."""


def is_new(case: Case, *place: Any) -> bool:
    found = (case.kind, *place)
    return found not in tried and not tried.add(found)


def with_another_type(array: np.ndarray) -> np.ndarray:
    """Return an array with other numbers in it: smaller ones, or records without a field."""
    names = array.dtype.names
    if names is None:
        return array.astype(np.float32)
    return array[list(names[1:])] if len(names) > 1 else array[names[0]]


@pytest.mark.slow
@every_case
def test_a_snapshot_with_a_damaged_array_is_refused_and_nothing_has_changed(case: Case):
    curriculum = case.make()
    live(curriculum, 45)
    before = curriculum.snapshot()
    for name, array in before.arrays.items():
        if not is_new(case, name, array.dtype, array.size > 0):
            continue
        others = {key: other for key, other in before.arrays.items() if key != name}
        damaged: tuple[Any, ...] = (
            np.concatenate([array, array[:1]]) if array.size else np.zeros(3, dtype=array.dtype),
            with_another_type(array),
            array.reshape(1, -1) if array.ndim == 1 else array.ravel(),
            None,
        )
        snapshots = [Snapshot(before.state, {**others, name: each}) for each in damaged]
        assert_all_refused(curriculum, [Snapshot(before.state, others), *snapshots], before)


@every_case
def test_a_snapshot_with_impossible_weights_is_refused(case: Case):
    curriculum = case.make()
    live(curriculum, 45)
    snapshot = curriculum.snapshot()
    for name in [name for name in snapshot.arrays if name.startswith("plan/table")]:
        damaged: list[Snapshot] = []
        for number in (-1.0, np.nan, np.inf):
            arrays = {**snapshot.arrays, name: snapshot.arrays[name].copy()}
            arrays[name].flat[0] = number
            damaged.append(Snapshot(snapshot.state, arrays))
        assert_all_refused(curriculum, damaged, snapshot, "weight|share")


def every_key(state: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    paths = []
    for key, value in state.items():
        paths.append((*path, key))
        paths += every_key(value, (*path, key)) if isinstance(value, dict) else []
    return paths


@pytest.mark.slow
@every_case
def test_a_snapshot_with_damaged_state_is_refused_and_nothing_has_changed(case: Case):
    curriculum = case.make()
    live(curriculum, 45)
    snapshot = curriculum.snapshot()
    rubbish: tuple[Any, ...] = ("absent", "rubbish", None, [7], -(10**30))
    for path in every_key(snapshot.state):
        if not is_new(case, path):
            continue
        damaged: list[Snapshot] = []
        for wrong in rubbish:
            state = copy.deepcopy(snapshot.state)
            parent: Any = state
            for key in path[:-1]:
                parent = parent[key]
            before = parent.pop(path[-1])
            if wrong != "absent":
                parent[path[-1]] = wrong
            if before is not None or wrong not in ("absent", None):
                damaged.append(Snapshot(state, snapshot.arrays))
        assert_all_refused(curriculum, damaged, snapshot)


@every_case
def test_a_damaged_or_cut_off_file_is_refused(case: Case, tmp_path: Path):
    curriculum = case.make()
    live(curriculum, 45)
    before = curriculum.snapshot()
    path = before.save(tmp_path / "state.npz")
    whole = path.read_bytes()
    for part in (b"", whole[:10], whole[: len(whole) // 2], whole[:-1], b"rubbish" + whole[7:]):
        path.write_bytes(part)
        with pytest.raises(SnapshotError, match=r"state\.npz"):
            curriculum.restore(Snapshot.load(path))
    assert differences(before, curriculum.snapshot()) == []


# Explaining.


@every_case
def test_explanations_are_typed_and_print(case: Case):
    curriculum = case.make()
    for _ in range(4):
        explanation = curriculum.explain()
        assert isinstance(explanation, Explanation)
        assert explanation.curriculum == case.kind.__name__
        assert explanation.episodes == curriculum.num_observed
        assert explanation.plan_version == curriculum.plan.version
        assert str(explanation).startswith(f"{case.kind.__name__}: 12 tasks")
        plain = explanation.to_json()
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        probs = curriculum.probs()
        for slot in range(12):
            told = curriculum.explain(slot)
            assert isinstance(told, TaskExplanation)
            assert told.prob == probs[slot]
            assert (told.slot, told.name) == (slot, curriculum.pool.task(slot).name)
            assert repr(told.name) in str(told)
            assert told.reason in str(told)
            plain = told.to_json()
            assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        live_with_incidents(curriculum, 70)


@every_case
def test_explaining_changes_nothing(case: Case):
    curriculum = case.make()
    live(curriculum, 45)
    before = curriculum.snapshot()
    str(curriculum.explain()), [str(curriculum.explain(slot)) for slot in range(12)]
    curriculum.probs(), curriculum.legend()
    assert differences(before, curriculum.snapshot()) == []


# One owner.

DRAWN = Draw(0, 0, 0, 1, 0, 0, -1, 0)
FIRST = Record.of(DRAWN, success=1.0)
USES: dict[str, Callable[[Any], object]] = {
    "draw": lambda curriculum: curriculum.draw(1),
    "draw_one": lambda curriculum: curriculum.draw_one(),
    "draw_batch": lambda curriculum: curriculum.draw_batch(1),
    "observe": lambda curriculum: curriculum.observe(FIRST),
    "report": lambda curriculum: curriculum.report(DRAWN, 1.0),
    "probs": lambda curriculum: curriculum.probs(),
    "explain": lambda curriculum: curriculum.explain(),
    "snapshot": lambda curriculum: curriculum.snapshot(),
    "quarantine": lambda curriculum: curriculum.quarantine(0, 0, "no such map"),
    "claim": lambda curriculum: curriculum.claim(object()),
}


def refusals(curriculum: Any) -> list[str]:
    """Name every use that a curriculum refuses because it belongs to another process."""
    refused = []
    for name, use in USES.items():
        try:
            use(curriculum)
        except WrongProcessError:
            refused.append(name)
    return refused


@every_case
def test_what_a_worker_unpickles_refuses_to_work(case: Case):
    curriculum = case.make()
    for made in (curriculum, case.make()):
        for marker in (pickle.loads(pickle.dumps(made)), copy.copy(made)):
            assert marker.is_foreign
            assert refusals(marker) == list(USES)
        with pytest.raises(WrongProcessError, match="cannot be copied"):
            copy.deepcopy(made)
        made.draw(1)
    assert refusals(curriculum)[:1] == []
    assert not curriculum.is_foreign


def _report_refusals(curriculum: Any, answers: Any) -> None:
    answers.put((curriculum.is_foreign, refusals(curriculum)))


@every_case
@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_copy_made_by_a_fork_refuses_to_work(case: Case):
    context = multiprocessing.get_context("fork")
    curriculum, answers = case.make(), context.SimpleQueue()
    curriculum.draw(1)
    child = context.Process(target=_report_refusals, args=(curriculum, answers))
    child.start()
    child.join(timeout=50)
    assert child.exitcode == 0
    is_foreign, refused = answers.get()
    assert is_foreign
    assert refused == list(USES)
    assert refusals(curriculum)[:1] == []


# Cost.


@cache
def many_labelled(num_tasks: int) -> UnionSource:
    """Make the union once for all: it compares the names of all tasks."""
    return UnionSource([NumberedSource(num_tasks // 3, label, f"{label}/") for label in LABELS])


def words_changed_by_a_record(case: Case, num_tasks: int) -> tuple[int, int]:
    """Return how many words of the plan drawing one task changes, and how many observing it."""
    curriculum = replace(case, source=many_labelled(num_tasks), capacity=None).make()
    live(curriculum, 2)
    before = curriculum.plan.block.copy()
    draw = curriculum.draw(1)[0]
    by_draw = int(np.count_nonzero(curriculum.plan.block != before))
    most = 0
    for success in (1.0, 0.0, 1.0, 1.0, 0.0, 1.0):
        before = curriculum.plan.block.copy()
        curriculum.observe(Record.of(draw, success=success))
        most = max(most, int(np.count_nonzero(curriculum.plan.block != before)))
    return by_draw, most


MOST_LEAVES = {
    "uniform": 0,
    "contributed": 1,
    "mixture": 0,
    "staged": 0,
    "staged_published": 0,
    "phased": 0,
    "learnability": 1,
    # One in each of two trees: by progress and by novelty.
    "progress": 2,
    "progress_pooled": 1,
    # Out of one layer and into another; likewise four others of the same kind.
    "frontier": 10,
    "frontier_alone": 2,
    "auto": 10,
    # By age, unseen, by score, and the score of one other whose turn it is to be ranked anew.
    "level_replay": 4,
    "level_replay_pooled": 4,
}
"""Weights that one record may change, whatever the number of tasks."""


@pytest.mark.parametrize("name", MOST_LEAVES)
def test_cost_is_flat_in_the_number_of_tasks(name: str):
    # Counted, not timed. A binary tree over a hundred times as many tasks is at most 7 levels
    # deeper.
    few, many = (words_changed_by_a_record(CASES[name], number) for number in (300, 30_000))
    assert few[0] == many[0] == 0
    assert many[1] <= few[1] + 7 * MOST_LEAVES[name]


# Determinism over versions.


@pytest.mark.parametrize("name", CASES)
def test_the_trace_of_draws_is_the_stored_one(name: str):
    draws = live(CASES[name].make(seed=1), NUM_TRACED).draws
    trace = {
        "slots": [draw.slot for draw in draws],
        "versions": [draw.plan_version for draw in draws],
    }
    path = TRACES / f"{name}.json"
    if os.environ.get("STEPLADDER_UPDATE_TRACES") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(trace, separators=(",", ":")) + "\n")
    assert json.loads(path.read_text()) == trace


def test_every_stored_trace_belongs_to_a_case():
    assert {path.stem for path in TRACES.glob("*.json")} == set(CASES)
