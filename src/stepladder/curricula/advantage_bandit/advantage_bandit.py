"""Favour labels whose episodes still surprise the agent: a bandit over mean absolute advantages.

Gets scores of episodes from a trainer (`trainer_scores`), gives shares of labels back; inside a
label, tasks are drawn equally often. Until a trainer has given the first score, the deviation of
each result from the task's running mean takes the place of its advantage.

After Wang et al. 2025, "DUMP: automated distribution-level curriculum learning for RL-based LLM
post-training": an arm per distribution of tasks, its value the mean absolute advantage of its last
episodes, an upper confidence bound on top, and a softmax of that. Advantages of a critic have the
unit of the reward, unlike those of DUMP, so they are divided by the largest of all labels.

A label whose results stay noisy whatever is learnt keeps the largest advantages. Do not use it with
tasks that are noisy by nature, nor where tasks of one label differ much in difficulty:
`LearningProgress` and `Learnability` judge single tasks.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import direct
from stepladder.curricula.advantage_bandit import kernels
from stepladder.curricula.advantage_bandit.config import AdvantageBanditConfig
from stepladder.curricula.advantage_bandit.kernels import Constants, State
from stepladder.curricula.batch_rule import CompiledRule
from stepladder.curricula.reporting.explanation import Explanation
from stepladder.curricula.returns import signal_settings
from stepladder.curricula.trainer_scores import PRIOR_MEAN, TrainerScored
from stepladder.errors import ConfigError
from stepladder.plans.plan import Grouping, aligned_words
from stepladder.plans.record import RecordArray
from stepladder.plans.status import DONE
from stepladder.records import settings_record, zeros

LABELS_PER_SCORE = 32
"""Labels whose share may be written for one score; with more of them, shares wait for scores."""

MAX_REMEMBERED = 50_000_000
"""Most scores that all windows together may hold."""


@dataclass(frozen=True, kw_only=True)
class AdvantageBanditExplanation(Explanation):
    """Which labels surprise most."""

    scored_by: str
    """What scores are at present: advantage or deviation."""

    labels: tuple[tuple[str, float, float, float], ...]
    """The labels with the largest shares: name, mean score, bonus, share of the draws."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        return [
            *super().lines(),
            f"Episodes are scored by {self.scored_by}.",
            *(
                f"  {name:<24} mean {mean:.3g}, bonus {bonus:.2f}, share {share:.4f}"
                for name, mean, bonus, share in self.labels
            ),
        ]


class AdvantageBandit(TrainerScored):
    """Draws labels by the mean absolute advantage of their latest episodes."""

    Config = AdvantageBanditConfig
    config: AdvantageBanditConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    groups_by_label = True
    rule = CompiledRule(kernels.observe_one, kernels.settle)

    def _set_up(self) -> None:
        super()._set_up()
        config, num_labels = self.config, len(self.pool.label_names)
        self.needs_success = config.scored_by == "deviation" and config.signal == "success"
        if num_labels * config.window_episodes > MAX_REMEMBERED:
            raise ConfigError(
                f"window_episodes {config.window_episodes} for each of {num_labels} labels makes "
                f"more than {MAX_REMEMBERED} scores to remember. Lower it, or use fewer labels."
            )
        state = zeros(
            State,
            tasks=self.pool.num_slots,
            labels=num_labels,
            windows=(num_labels, config.window_episodes),
        )
        state.tasks["mean"] = PRIOR_MEAN
        self._keep_state(state)
        settings = settings_record(
            config,
            **signal_settings(config),
            takes_advantages=config.scored_by == "advantage",
            scores_per_write=max(1, num_labels // LABELS_PER_SCORE),
        )
        self._constants = Constants(settings, self._labels.astype(np.int64))
        self._kernel = direct(
            kernels.observe, aligned_words(1), 0, state, self._constants, self._scratch
        )

    def kernel_state(self) -> tuple[Any, ...]:
        """Return what the method's kernels take before the records."""
        return (self._plan or self.plan).block, self._table, self._state, self._constants

    def _groupings(self) -> list[Grouping]:
        return [Grouping(self._labels, len(self.pool.label_names))]

    def _publish(self) -> None:
        self._fill_weights(self.pool.base_weights)
        kernels.write_shares(*self.kernel_state())

    def _update(self, records: RecordArray, num_done: int) -> int:
        if num_done:
            return DONE
        block, table, state, constants = self.kernel_state()
        return self._kernel(*(block, table, state, constants, records))

    def _take_scores(self, slots: Words, generations: Words, scores: Floats) -> None:
        block, table, state, constants = self.kernel_state()
        kernels.observe_scores(block, table, state, constants, slots, generations, scores)

    def _slot_replaced(self, slot: int) -> None:
        tasks = self._state.tasks
        tasks["num_plays"][slot], tasks["mean"][slot] = 0, PRIOR_MEAN
        super()._slot_replaced(slot)

    def _slot_lost(self, slot: int, reason: str) -> None:
        kernels.write_shares_anew(*self.kernel_state())

    # Looking.

    def plays(self) -> Words:
        """Return how often each slot's task was played."""
        return self._state.tasks["num_plays"].copy()

    def label_means(self) -> dict[str, float]:
        """Return the mean score of every label's latest episodes; 0 without any."""
        labels = self._state.labels
        counts = np.clip(labels["num_scores"], 1, self.config.window_episodes)
        return dict(zip(self.pool.label_names, (labels["total"] / counts).tolist(), strict=True))

    def label_shares(self) -> dict[str, float]:
        """Return the share of the draws of every label, exploration included."""
        sums = np.bincount(self._labels, self.probs(), minlength=len(self.pool.label_names))
        return dict(zip(self.pool.label_names, sums.tolist(), strict=True))

    def scores(self) -> Floats:
        """Return the mean score of every slot's label."""
        return np.array(list(self.label_means().values()))[self._labels]

    @property
    def _scored_by(self) -> str:
        is_told = bool(self._state.method["has_trainer"][0])
        return "advantage" if is_told else "deviation"

    def _bonus(self, index: int) -> float:
        num_own = int(self._state.labels["num_scores"][index])
        num_scores = int(self._state.method["num_scores"][0])
        return kernels.bonus_of(num_own, num_scores, self.config.bonus)

    def _explain(self) -> AdvantageBanditExplanation:
        names = self.pool.label_names
        means, shares = self.label_means(), self.label_shares()
        best = sorted(range(len(names)), key=lambda index: (-shares[names[index]], index))[:10]
        return AdvantageBanditExplanation(
            **self._overview_fields(),
            scored_by=self._scored_by,
            labels=tuple(
                (names[index], means[names[index]], self._bonus(index), shares[names[index]])
                for index in best
            ),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        index, label = int(self._labels[slot]), self.label_of(slot)
        numbers = {
            "plays": float(self._state.tasks["num_plays"][slot]),
            "label_mean": self.label_means()[label],
            "label_bonus": self._bonus(index),
            "label_share": self.label_shares()[label],
        }
        count = int(self._state.labels["num_scores"][index])
        if count == 0:
            return f"no episode of label {label!r} was scored yet", numbers
        return (
            f"label {label!r} is drawn by the mean {self._scored_by} of its latest episodes"
        ), numbers
