"""What a training is measured by: its policy on held-out games, and random play beside it.

Called by `session`, with `evaluation` below. On the way the policy plays in its own way alone, and
fixed levels once: that is cheap. At the end it plays in both ways, and in full. Random play is
measured once per training, before its first evaluation, and kept.
"""

from dataclasses import replace
from typing import Any

import torch

from stepladder.agents.base import Agent
from stepladder.agents.player import Player, make_player
from stepladder.errors import SnapshotError
from stepladder.training.config import TrainingConfig
from stepladder.training.evaluation import Evaluation, Way
from stepladder.training.evaluation.playing import Random, evaluate
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.evaluation.rivals import rivals_of
from stepladder.training.evaluation.stored import evaluation_from_json

RANDOM: Random = "random"


class Examiner:
    """Lets an agent play held-out games.

    Args:
        config: Of the training.
        agent: Who is examined; its weights are those of the moment.
        device: Where it plays.

    Raises:
        ConfigError: An evaluation is asked for that cannot be played.
        SnapshotError: One of its opponents cannot be.
    """

    def __init__(self, config: TrainingConfig, agent: Agent, device: torch.device):
        self._agent, self._device, self._seed = agent, device, config.evaluation.seed
        self._own_way: Way = config.agent.own_way
        self._request = EvaluationRequest.of(config)
        self._rivals = rivals_of(config, self._request, agent)
        self.baseline: Evaluation | None = None
        """Random play of the same games, once it is measured."""
        self.num_steps = 0
        """Env steps that were played so far, those of random play among them."""

    def examine(self, *, in_full: bool) -> Evaluation:
        """Return how well the agent plays in its own way.

        Args:
            in_full: Whether its other way and random play are measured beside it.
        """
        baseline = self.baseline or self._evaluate(RANDOM)
        self.baseline = baseline
        own = self._evaluate(self._own_way, is_brief=not in_full)
        if not in_full:
            return own
        other = self._evaluate("best" if self._own_way == "drawn" else "drawn")
        return replace(own, beside=(baseline, other))

    def _evaluate(self, way: Way, *, is_brief: bool = False) -> Evaluation:
        description, weights = self._agent.description(), self._agent.weights()

        def make(num_rows: int) -> Player:
            return make_player(description, weights, num_rows, device=self._device, seed=self._seed)

        request = replace(self._request, is_deterministic=way == "best", is_brief=is_brief)
        subject = RANDOM if way == RANDOM else make
        result = evaluate(subject, request, rivals=self._rivals)
        self.num_steps += result.num_steps
        return result


def checked_baseline(saved: Any) -> Evaluation | None:
    """Return random play as a checkpoint has it; None if it was not measured, as in older ones.

    Raises:
        SnapshotError: It is damaged.
    """
    if saved is None:
        return None
    try:
        return evaluation_from_json(saved)
    except SnapshotError as error:
        raise SnapshotError(
            f"the checkpoint's baseline is damaged ({error}). Use an older checkpoint."
        ) from error
