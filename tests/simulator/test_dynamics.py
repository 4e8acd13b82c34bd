"""The settings of the learner: the defaults, the ancestor's recipes, and what is refused."""

import re

import pytest

from stepladder.errors import ConfigError
from stepladder.simulator import RECIPES, Epochwise, Noise, Prerequisite, recipe


def test_the_standard_learner_has_the_designs_defaults():
    dynamics = Prerequisite()
    assert (dynamics.start, dynamics.eta, dynamics.gamma) == (0.01, 0.05, 0.1)
    assert (dynamics.lambda_forget, dynamics.mastery) == (2e-5, 0.9)


def test_what_a_play_shows_is_success_alone_unless_asked():
    assert Noise() == Noise(
        reward="success", task_noise_std=0.0, sample_noise_std=0.0, reward_base=0.0, saturate=False
    )


# Name, tasks, epochs, plays per env and epoch, envs; then gamma, lambda, mastery, dt; then the
# noise of a task and of a sample.
ANCESTOR = [
    ("train", 10, 500, 10, 32, 0.3, 0.05, 0.85, 0.1, 0.05, 0.01),
    ("train-seed", 10, 500, 100, 4, 0.3, 0.05, 0.85, 0.1, 0.05, 0.0),
    ("config", 10, 100, 50, 32, 0.1, 0.1, 0.9, 0.1, 0.1, 0.01),
    ("tool-seed", 10, 100, 50, 1, 0.5, 0.01, 0.9, 0.1, 1e-8, 0.0),
    ("large-chain", 25, 2000, 100, 1, 0.5, 0.01, 0.9, 0.1, 1e-8, 0.0),
]


@pytest.mark.parametrize("expected", ANCESTOR, ids=lambda row: row[0])
def test_recipes_are_the_ancestors(expected):
    found = recipe(expected[0])
    dynamics, noise = found.dynamics, found.noise
    assert (
        expected[0],
        found.num_tasks,
        found.num_epochs,
        dynamics.samples_per_epoch,
        found.num_envs,
        dynamics.gamma,
        dynamics.lambda_forget,
        dynamics.mastery,
        dynamics.dt,
        noise.task_noise_std,
        noise.sample_noise_std,
    ) == expected
    assert dynamics.start == 0.01
    # Its reward: 0.5 and the skill, cut off at 1.
    assert (noise.reward, noise.reward_base, noise.saturate) == ("skill", 0.5, True)


def test_every_recipe_is_checked_here():
    assert set(RECIPES) == {row[0] for row in ANCESTOR}


def test_an_unknown_recipe_is_refused_with_the_names_there_are():
    with pytest.raises(ConfigError, match=r"no recipe 'training'; there are train, train-seed"):
        recipe("training")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Prerequisite(eta=0.0), "eta must lie in (0, 1]; got 0.0"),
        (lambda: Prerequisite(eta=1.5), "eta must lie in (0, 1]; got 1.5"),
        (lambda: Prerequisite(gamma=-0.1), "gamma"),
        (lambda: Prerequisite(lambda_forget=1.0), "lambda_forget must lie in [0, 1); got 1.0"),
        (lambda: Prerequisite(start=2.0), "start"),
        (lambda: Prerequisite(mastery=0.0), "mastery must lie in (0, 1]; got 0.0"),
        (lambda: Prerequisite(mastery=float("nan")), "mastery"),
        (lambda: Prerequisite(eta="fast"), "eta"),
        (lambda: Epochwise(dt=0.0), "dt"),
        (lambda: Epochwise(gamma=-1.0), "gamma must be finite and at least 0; got -1.0"),
        (lambda: Epochwise(lambda_forget=float("inf")), "lambda_forget"),
        (lambda: Epochwise(samples_per_epoch=0), "samples_per_epoch"),
        (lambda: Epochwise(samples_per_epoch=2.5), "samples_per_epoch"),
        (lambda: Epochwise(start=-0.1), "start"),
        (lambda: Noise(reward="points"), "reward must be 'success' or 'skill'; got 'points'"),
        (lambda: Noise(reward="skill", task_noise_std=-1.0), "task_noise_std"),
        (lambda: Noise(reward="skill", sample_noise_std=float("nan")), "sample_noise_std"),
        (
            lambda: Noise(reward="skill", reward_base=float("inf")),
            "reward_base must be a finite number",
        ),
        (lambda: Noise(reward="skill", reward_base="half"), "reward_base must be a finite number"),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["task_noise_std", "sample_noise_std"])
def test_no_setting_is_dead(name):
    # The return is the success itself, so an error of the reward would never be seen.
    with pytest.raises(ConfigError, match=rf"{name} is 0\.1, but .* Set reward='skill'"):
        Noise(**{name: 0.1})
