"""What a sweep varies: fields and values from text, and what they make of a scenario."""

import pytest

from stepladder.curricula import FrontierConfig, StagedConfig
from stepladder.errors import ConfigError
from stepladder.simulator.scenarios import scenario
from stepladder.simulator.swept import SimulationSetup, SweepConfig
from stepladder.sweeps.space import (
    SweepChoice,
    SweepRange,
    combinations,
    no_field_twice,
    parse_choice,
    parse_range,
)

FRONTIER, PROGRESS, STAGED = (
    SweepConfig(scenario="chain-3", curriculum=name).fields()
    for name in ("frontier", "learning-progress", "staged")
)


def setup(curriculum: str = "frontier", **params: object) -> SimulationSetup:
    named = {name.replace("__", "."): value for name, value in params.items()}
    return SweepConfig(scenario="chain-3", curriculum=curriculum).setup(named)


def test_fields_are_those_of_the_curriculum_the_learner_and_the_simulation() -> None:
    assert {"probing", "trial_episodes", "features"} <= FRONTIER.keys()
    assert {"dynamics.eta", "noise.reward", "simulation.num_envs"} <= FRONTIER.keys()
    assert "early.success" in STAGED
    # A stage has a name; there is no way to write one as a value.
    assert "stages" not in STAGED


@pytest.mark.parametrize(
    ("text", "fields", "values"),
    [
        ("probing=0.02,0.5", FRONTIER, (0.02, 0.5)),
        ("probing=1", FRONTIER, (1.0,)),
        ("trial_episodes = 10, 20", FRONTIER, (10, 20)),
        ("trial-episodes=10", FRONTIER, (10,)),
        ("features=,position,x+y", FRONTIER, ((), ("position",), ("x", "y"))),
        ("noise_z=None,0,1.5", PROGRESS, (None, 0.0, 1.5)),
        ("signal=success,return", PROGRESS, ("success", "return")),
        ("standard=true,False", STAGED, (True, False)),
        ("simulation.scenario=chain-2,grid-2x2", FRONTIER, ("chain-2", "grid-2x2")),
        ("probing=0.1,0.1,0.2", FRONTIER, (0.1, 0.2)),
    ],
)
def test_values_are_read_as_the_field_wants_them(
    text: str, fields: dict[str, object], values: tuple[object, ...]
) -> None:
    read = parse_choice(text, fields).values
    assert read == values
    assert list(map(type, read)) == list(map(type, values))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "porbing=1",
            "there is no field 'porbing' to vary; there are exploration, max_share, pooled,",
        ),
        ("probing", "'probing' does not name values; expected field=value,value"),
        ("probing=", "does not name values"),
        ("probing=much", "probing must be a finite number; got 'much'"),
        ("probing=nan", "probing must be finite; got 'nan'"),
        ("trial_episodes=2.5", "trial_episodes must be an integer; got '2.5'"),
        ("trial_episodes=None", "trial_episodes must be an integer; got 'None'"),
        ("noise.saturate=maybe", "noise.saturate must be true or false; got 'maybe'"),
    ],
)
def test_a_wrong_field_or_value_is_named_in_one_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_choice(text, FRONTIER)
    assert words in str(caught.value)


def test_a_wrong_choice_lists_the_right_ones() -> None:
    with pytest.raises(ConfigError, match="must be 'success' or 'return'; got 'luck'"):
        parse_choice("signal=luck", PROGRESS)


def test_ranges_are_read_with_their_scale() -> None:
    assert parse_range("probing=0.01..0.5:log", FRONTIER) == SweepRange(
        "probing", 0.01, 0.5, log=True, whole=False
    )
    assert parse_range("trial_episodes=10..80", FRONTIER) == SweepRange(
        "trial_episodes", 10, 80, log=False, whole=True
    )
    assert parse_range("noise_z=0..3", PROGRESS) == SweepRange("noise_z", 0.0, 3.0, False, False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("features=a..b", "features does not hold numbers, so it has no range"),
        ("probing=0.1", "'probing=0.1' is not a range; expected probing=low..high"),
        ("probing=0.1..0.2:linear", "is not a range"),
        ("probing=0.2..0.1", "the range of probing must rise; got 0.2 to 0.1"),
        ("probing=0..1:log", "must rise above 0; got 0.0 to 1.0"),
        ("probing=0.1..inf", "must be finite"),
    ],
)
def test_what_is_no_range_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_range(text, FRONTIER)
    assert words in str(caught.value)


def test_a_grid_has_every_combination_the_last_field_varying_fastest() -> None:
    assert combinations([SweepChoice("a", (1, 2)), SweepChoice("b", ("x", "y", "z"))]) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 1, "b": "z"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
        {"a": 2, "b": "z"},
    ]


def test_nothing_is_varied_twice_and_something_at_least_once() -> None:
    twice = [SweepChoice("probing", (0.1,)), SweepRange("probing", 0.1, 0.2, False, False)]
    with pytest.raises(ConfigError, match="probing is varied twice"):
        no_field_twice(twice)
    with pytest.raises(ConfigError, match="nothing is varied"):
        no_field_twice([])
    no_field_twice(twice[:1])


def test_values_arrive_in_the_curriculum_the_learner_and_the_simulation() -> None:
    made = setup(
        probing=0.25,
        features=["position"],
        dynamics__eta=0.5,
        noise__reward="skill",
        simulation__scenario="grid-2x2",
        simulation__num_envs=4,
        simulation__budget=77,
    )
    assert made.config == FrontierConfig(probing=0.25, features=("position",))
    assert made.place.dynamics.eta == 0.5  # pyright: ignore[reportAttributeAccessIssue]
    assert made.place.noise.reward == "skill"
    assert made.place.graph.num_tasks == 4
    assert (made.num_envs, made.budget) == (4, 77)


def test_without_a_budget_the_scenario_decides() -> None:
    assert setup(probing=0.1).budget == scenario("chain-3").budget


def test_nested_fields_change_alone() -> None:
    made = setup("staged", early__success=0.99, early__min_episodes=5).config
    assert isinstance(made, StagedConfig)
    assert made.early is not None
    assert (made.early.success, made.early.min_episodes) == (0.99, 5)
    assert len(made.stages) == 3


def test_values_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="slow_halflife_episodes must lie above"):
        setup("learning-progress", fast_halflife_episodes=40.0)
    with pytest.raises(ConfigError, match="there is no curriculum 'nope'"):
        setup("nope")
    with pytest.raises(ConfigError, match=r"simulation\.num_envs must be an integer"):
        setup(simulation__num_envs=0)
    with pytest.raises(ConfigError, match=r"simulation\.budget must be an integer"):
        setup(simulation__budget=0)
