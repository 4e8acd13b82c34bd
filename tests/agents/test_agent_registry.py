"""Agents are found by name: built-in ones, and whatever is registered."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from stepladder.agents import Agent, AgentConfig, PPOConfig, register_agent
from stepladder.agents.config import AGENTS, agent_named
from stepladder.agents.policy import Policy
from stepladder.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Cautious(PPOConfig):
    """Takes smaller steps."""

    kind: ClassVar[str] = "Cautious"
    clip: float = 0.1


@pytest.mark.parametrize("name", ["DDDQN", "SAC", "PPO"])
def test_a_built_in_config_names_its_classes(name: str) -> None:
    config = AGENTS[name]()
    assert config.kind == name
    assert issubclass(config._loaded(config.agent_class), Agent)
    assert issubclass(config._loaded(config.policy_class), Policy)


def test_a_registered_agent_is_found_by_name_and_read_from_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AGENTS, "_entries", {})
    assert register_agent(Cautious) is Cautious
    assert agent_named("cautious") is AGENTS["Cautious"] is Cautious
    assert AgentConfig.from_json({"type": "Cautious", "gamma": 0.5}) == Cautious(gamma=0.5)
    assert list(AGENTS)[:4] == ["DDDQN", "SAC", "PPO", "Cautious"]


def test_what_cannot_be_an_agent_is_refused() -> None:
    for entry in (AgentConfig, int):
        with pytest.raises(ConfigError, match="must be a class that derives from AgentConfig"):
            register_agent(entry)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="already have an entry 'PPO'"):
        AGENTS.register("PPO")(Cautious)
    with pytest.raises(ConfigError, match="agent must be one of dddqn, sac, ppo; got 'td3'"):
        agent_named("td3")


def test_an_agent_without_a_name_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Nameless(AgentConfig):
        kind: ClassVar[str] = ""

    with pytest.raises(ConfigError, match="has no name"):
        register_agent(Nameless)
