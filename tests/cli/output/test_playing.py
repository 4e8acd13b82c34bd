"""Episodes for somebody to look at: who plays, and which steps are seen."""

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Text

from stepladder.cli.inputs.playable import Playable, make_env
from stepladder.cli.output.playing import PlayCounts, Shutter, idle_action, make_policy, play
from stepladder.errors import ConfigError, EnvError


def test_the_shutter_opens_as_often_as_it_should() -> None:
    shutter = Shutter(50, 30)
    opened = [shutter.opens() for _ in range(50)]
    assert opened[0]
    assert sum(opened) == 30
    always = Shutter(30, 60)
    assert all(always.opens() for _ in range(10))


def test_an_idle_player_is_as_near_to_nothing_as_the_space_allows() -> None:
    env = make_env("MountainCarContinuous-v0", {})
    action = make_policy("idle", Playable(name="car", env=env))(None)
    assert action.dtype == np.float32
    assert action.tolist() == [0.0]
    env.close()
    spaces = Dict({"a": Discrete(3, start=2), "b": MultiDiscrete([2, 2]), "c": Box(1, 2, (2,))})
    idle = idle_action(spaces)
    assert {name: np.asarray(part).tolist() for name, part in idle.items()} == {
        "a": 2,
        "b": [0, 0],
        "c": [1.0, 1.0],
    }
    with pytest.raises(ConfigError, match=r"Text.* has no idle action"):
        idle_action(Text(4))


def test_what_a_policy_raises_names_the_policy() -> None:
    def broken(observation: Any) -> Any:
        raise RuntimeError("no idea")

    playable = Playable(name="pole", env=make_env("CartPole-v1", {}))
    pictures = play(
        playable,
        broken,
        num_episodes=1,
        max_steps=5,
        seed=0,
        shutter=Shutter(50, 50),
        end_pictures=0,
        counts=PlayCounts(),
    )
    next(pictures)
    with pytest.raises(EnvError, match=r"the policy raised RuntimeError: no idea\. Fix its code\."):
        next(pictures)
    playable.env.close()


def test_an_expert_plays_unless_somebody_else_is_named() -> None:
    class Expert:
        unwrapped: Any
        action_space = Discrete(4)

        def __init__(self) -> None:
            self.unwrapped = self

        def scripted_action(self) -> int:
            return 17

    playable = Playable(name="x", env=Expert())  # type: ignore[arg-type]
    for name in (None, "scripted", "planner"):
        assert make_policy(name, playable)(None) == 17
    assert make_policy("random", playable)(None) < 4
