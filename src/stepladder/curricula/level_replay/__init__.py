"""Prioritised level replay."""

from stepladder.curricula.level_replay.config import LevelReplayConfig
from stepladder.curricula.level_replay.level_replay import LevelReplay
from stepladder.curricula.level_replay.report import LevelReplayExplanation

__all__ = ["LevelReplay", "LevelReplayConfig", "LevelReplayExplanation"]
