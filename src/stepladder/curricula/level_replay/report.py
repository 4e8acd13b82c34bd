"""What level replay is doing, and why, as data and in words. Made by `LevelReplay.explain`."""

from dataclasses import dataclass

from stepladder.curricula.explanation import Explanation


@dataclass(frozen=True, kw_only=True)
class LevelReplayExplanation(Explanation):
    """How much is replayed, and what."""

    num_seen: int
    """Tasks that have a score."""

    replay_prob: float
    """Probability that the next draw is a replay, exploration apart."""

    num_evicted: int
    """Tasks that made room for others so far."""

    top: tuple[tuple[str, float, float], ...]
    """The tasks with the highest scores: name, score, probability."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        return [
            *super().lines(),
            f"{self.num_seen} tasks have a score, {self.num_evicted} have been replaced; the next "
            f"draw is a replay with probability {self.replay_prob:.2f}.",
            *(f"  {name:<24} score {s:.3f}, probability {q:.4f}" for name, s, q in self.top),
        ]
