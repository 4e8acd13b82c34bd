"""Named settings: curricula that people know, ready to use.

A preset is an instance of a config; change one field with `dataclasses.replace`, or one stage with
`StagedConfig.with_stage`.
"""

from stepladder.curricula.staged.config import Stage, StagedConfig

SEVEN_STAGES = StagedConfig(
    stages=(
        Stage(name="simplest", threshold=0.60, min_episodes=50),
        Stage(name="simpler", threshold=0.65, min_episodes=60, demotion_threshold=0.30),
        Stage(name="simple", threshold=0.70, min_episodes=80, demotion_threshold=0.30),
        Stage(name="medium", threshold=0.70, min_episodes=100, demotion_threshold=0.25),
        Stage(name="complex", threshold=0.75, min_episodes=120, demotion_threshold=0.20),
        Stage(name="exploration", threshold=0.80, min_episodes=150, demotion_threshold=0.15),
        Stage(name="mine_heavy", threshold=0.80, min_episodes=150, demotion_threshold=0.15),
    )
)
"""The seven stages of a platform-game agent; the bar rises with the difficulty."""

SEVEN_STAGES_LENIENT = StagedConfig(
    stages=(
        Stage(name="simplest", threshold=0.70, min_episodes=50),
        Stage(name="simpler", threshold=0.60, min_episodes=50, demotion_threshold=0.30),
        Stage(name="simple", threshold=0.50, min_episodes=75, demotion_threshold=0.30),
        Stage(name="medium", threshold=0.45, min_episodes=100, demotion_threshold=0.25),
        Stage(name="complex", threshold=0.40, min_episodes=150, demotion_threshold=0.20),
        Stage(name="exploration", threshold=0.35, min_episodes=150, demotion_threshold=0.15),
        Stage(name="mine_heavy", threshold=0.30, min_episodes=200, demotion_threshold=0.15),
    )
)
"""The same stages as set later, because real runs never advanced: the bar falls."""
