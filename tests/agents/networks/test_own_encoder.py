"""A network of a user's own: made, tried, and refused in one line."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from torch import nn

from agents.small_worlds import ROLLOUT, SEEN, Noise, live
from stepladder.agents.base import make_agent
from stepladder.agents.player import make_player
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.vision.config import VisionConfig
from stepladder.errors import ConfigError, SnapshotError

ACTIONS = Discrete(3)


class Fine(nn.Module):
    def __init__(self, space: Box, width: int = 4):
        super().__init__()
        self.layer = nn.Linear(space.shape[-1], width)

    def forward(self, seen: torch.Tensor) -> Any:
        return self.layer(seen)


class OneRow(Fine):
    def forward(self, seen: torch.Tensor) -> Any:
        return self.layer(seen)[0]


class NoTensor(Fine):
    def forward(self, seen: torch.Tensor) -> Any:
        return [self.layer(seen)]


class Unused(Fine):
    def __init__(self, space: Box):
        super().__init__(space)
        self.other = nn.Linear(2, 2)


class Broken(Fine):
    def forward(self, seen: torch.Tensor) -> Any:
        return self.layer(seen[:, :1])


class Doubles(Fine):
    def __init__(self, space: Box):
        super().__init__(space)
        self.double()


def no_module(space: Box) -> int:
    return 3


def made(encoder: Any, **kwargs: Any) -> Any:
    config = PPOConfig(**ROLLOUT, encoder=encoder, encoder_kwargs=kwargs)
    return make_agent(config, SEEN, ACTIONS, 4)


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        (OneRow, r"must return float32 of shape \(rows, features\), here \(2, …\); got float32 of"),
        (NoTensor, "got something of type list. Fix its forward"),
        (Unused, "has the weights 'other.weight', which its features do not depend on"),
        (Broken, "failed with 2 rows of observations: RuntimeError: "),
        (Doubles, "must have weights of float32"),
        (no_module, "must make a torch.nn.Module; it made something of type int"),
        ("agents.networks.test_own_encoder:Nothing", "has no 'Nothing'"),
        ("no_such_module:Net", "cannot be imported: No module named"),
        ("Fine", r"must be module:Class; got 'Fine'"),
        (3, "encoder must be a class or its name; got 3"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(encoder: Any, words: str):
    with pytest.raises(ConfigError, match=words) as caught:
        made(encoder)
    assert "\n" not in str(caught.value)


def test_arguments_are_passed_and_wrong_ones_named():
    assert made(Fine, width=9).policy().encoder.num_features == 9
    with pytest.raises(ConfigError, match=r"encoder_kwargs \{'wide': 9\}: TypeError: "):
        made(Fine, wide=9)
    with pytest.raises(ConfigError, match=r"encoder_kwargs has entries, and no encoder is named"):
        PPOConfig(encoder_kwargs={"width": 3})
    with pytest.raises(ConfigError, match="vision is not used with an encoder of your own"):
        PPOConfig(encoder=Fine, vision=VisionConfig(features=3))


def test_initial_weights_depend_on_the_seed_alone():
    def weights(seed: int) -> Any:
        config = PPOConfig(**ROLLOUT, encoder=Fine)
        return make_agent(config, SEEN, ACTIONS, 4, seed=seed).weights()[
            "encoder.network.layer.bias"
        ]

    torch.manual_seed(5)
    one = weights(1)
    torch.manual_seed(6)
    assert torch.equal(one, weights(1))
    assert not torch.equal(one, weights(2))


NET = """
from pathlib import Path
from torch import nn
Path("executed").touch()
class Net(nn.Linear):
    def __init__(self, space):
        super().__init__(3, 5)
"""


def test_a_network_that_a_file_names_is_imported_only_if_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("foreign_net.py").write_text(NET)
    agent = made("agents.networks.test_own_encoder:Fine", width=5)
    live(agent, Noise(4), 3)
    config = replace(agent.config, encoder="foreign_net:Net", encoder_kwargs={})
    description = {**agent.description(), "config": config.to_json()}
    weights = {name.replace("layer.", ""): one for name, one in agent.weights().items()}
    with pytest.raises(SnapshotError, match=r"would import 'foreign_net' and run that code; if"):
        make_player(description, weights, 4)
    assert not Path("executed").exists()
    player = make_player(description, weights, 4, trust=True)
    assert Path("executed").exists()
    seen = np.ones((4, 3), dtype=np.float32)
    assert np.array_equal(player.act_batch(seen), agent.act_batch(seen, deterministic=True))
    sys.modules.pop("foreign_net")
