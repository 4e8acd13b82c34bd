import copy
import json

import pytest

from stepladder.curricula.phased.settings import Mixed, Ramp, resolve
from stepladder.errors import ConfigError
from stepladder.training.config import TrainingConfig, load_config
from stepladder.training.contradictions import neural_opponents

SHAPING = {
    "N": 600,
    "K": 400,
    "CLOSENESS_START": 20.0,
    "TOUCH_START": 15.0,
    "CLOSENESS_FINAL": 1.5,
    "TOUCH_FINAL": 1.0,
    "DIRECTION_FINAL": 2.0,
}


def phase(name, episodes, mode, opponent, **more):
    return {
        "name": name,
        "episodes": episodes,
        "environment": {"mode": mode, "keep_mode": True},
        "opponent": {"type": opponent, "weight": 1.0},
        "reward_shaping": None,
        **more,
    }


def weighted(*opponents):
    return {
        "type": "weighted_mixture",
        "opponents": [{"type": kind, "weight": weight} for kind, weight in opponents],
    }


def simple():
    """The shape of the file "simple": four phases and a DDDQN."""
    return {
        "curriculum": {
            "phases": [
                phase("shooting", 8_000, "TRAIN_SHOOTING", "none"),
                phase("defense", 8_000, "TRAIN_DEFENSE", "basic_weak"),
                phase("integration", 15_000, "NORMAL", "")
                | {"opponent": weighted(("basic_weak", 0.8), ("basic_strong", 0.2))},
                phase("full_competency", 40_000, "NORMAL", "basic_strong"),
            ]
        },
        "hyperparameters": {"learning_rate": 5e-4, "batch_size": 512},
        "training": {
            "max_episode_steps": 500,
            "updates_per_step": 1,
            "warmup_steps": 80_000,
            "reward_scale": 0.5,
            "checkpoint_save_freq": 5_000,
        },
        "agent": {
            "type": "DDDQN",
            "hyperparameters": {
                "hidden_dim": [256, 512, 256],
                "target_update_freq": 2_000,
                "eps": 1,
                "eps_min": 0.1,
                "eps_decay": 0.9995,
                "action_fineness": 3,
                "use_huber_loss": True,
            },
        },
    }


def sac():
    """The shape of the file "sac": three phases and pink noise."""
    return {
        "curriculum": {
            "phases": [
                phase("shooting", 400, "TRAIN_SHOOTING", "none", reward_shaping=SHAPING),
                phase("defense", 300, "TRAIN_DEFENSE", "none"),
                phase("normal", 500, "NORMAL", "basic_weak"),
            ]
        },
        "hyperparameters": {"learning_rate": 3e-4, "batch_size": 256},
        "training": {"warmup_steps": 20_000, "reward_scale": 0.1, "max_episode_steps": 250},
        "agent": {
            "type": "SAC",
            "hyperparameters": {
                "discount": 0.98,
                "tau": 0.01,
                "alpha": 0.2,
                "learn_alpha": True,
                "noise": "pink",
                "max_episode_steps": 250,
            },
        },
    }


def without(data, *path):
    """Return a copy of a document that lacks one key."""
    data = copy.deepcopy(data)
    *outer, last = path
    place = data
    for key in outer:
        place = place[key]
    del place[last]
    return data


def with_value(data, value, *path):
    """Return a copy of a document in which one key says something else."""
    data = copy.deepcopy(data)
    *outer, last = path
    place = data
    for key in outer:
        place = place[key]
    place[last] = value
    return data


def problems_of(data):
    with pytest.raises(ConfigError) as refusal:
        load_config(data)
    lines = [f"{path}: {text}" for path, text in refusal.value.problems]
    assert " in the config; nothing was started:" in str(refusal.value)
    assert all(line in str(refusal.value) for line in lines)
    return lines


def self_play(*opponents):
    data = sac()
    data["curriculum"]["phases"] = [
        phase(f"phase {index}", 10, "NORMAL", "") | {"opponent": opponent}
        for index, opponent in enumerate(opponents)
    ]
    return data


def test_the_file_simple_is_accepted_as_it_is():
    config = load_config(simple())
    assert config.env == "stepladder/Hockey-v0"
    assert config.env_kwargs == {"actions": "discrete", "fineness": 3}
    assert [entry.name for entry in config.curriculum.phases] == [
        "shooting",
        "defense",
        "integration",
        "full_competency",
    ]
    assert config.curriculum.phases[0].settings == {"mode": "TRAIN_SHOOTING", "opponent": "none"}
    assert config.curriculum.phases[2].settings == {
        "mode": "NORMAL",
        "opponent": Mixed(("weak", "strong"), (0.8, 0.2)),
    }
    agent = config.agent
    assert (agent.kind, agent.learning_rate, agent.batch_size) == ("DDDQN", 5e-4, 512)
    assert agent.hidden_sizes == (256, 512, 256)
    assert (agent.target_every_updates, agent.loss, agent.max_grad_norm) == (2_000, "huber", 1.0)
    assert (agent.updates_per_step, agent.warmup_steps) == (1.0, 80_000)
    assert (config.reward_scale, config.max_episode_steps) == (0.5, 500)
    config.curriculum.make(config.task_source())


def test_the_file_base_mixes_modes_in_a_phase():
    data = simple()
    data["curriculum"]["phases"][3]["environment"] = {
        "mixture": [{"mode": "TRAIN_SHOOTING", "weight": 3}, {"mode": "NORMAL"}],
        "keep_mode": False,
    }
    settings = load_config(data).curriculum.phases[3].settings
    assert settings["mode"] == Mixed(("TRAIN_SHOOTING", "NORMAL"), (3.0, 1.0))
    assert settings["keep_mode"] is False


def test_the_file_sac_is_accepted_as_it_is():
    config = load_config(sac())
    agent = config.agent
    assert (agent.kind, agent.learning_rate, agent.batch_size) == ("SAC", 3e-4, 256)
    assert (agent.gamma, agent.tau, agent.hidden_sizes) == (0.98, 0.01, (256, 256, 256))
    assert (agent.noise, agent.pink_steps, agent.initial_temperature) == ("pink", 250, 1.0)
    assert (config.env_kwargs, config.opponents.archive) == ({}, None)
    assert config.checkpoints.every_steps is None
    fixed = with_value(sac(), False, "agent", "hyperparameters", "learn_alpha")
    assert load_config(fixed).agent.initial_temperature == 0.2
    assert not load_config(fixed).agent.learn_temperature


@pytest.mark.parametrize("make", [simple, sac])
def test_what_was_read_comes_back_from_our_own_json(make, tmp_path):
    path = tmp_path / "published.json"
    path.write_text(json.dumps(make()))
    config = load_config(path)
    assert TrainingConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_training_ends_with_the_last_episode_and_steps_are_a_bound():
    config = load_config(simple())
    assert config.total_episodes == 71_000
    # No episode has more than 251 steps and one for the reset; 1,024 may be under way.
    assert config.total_steps == (71_000 + 1_024) * 252


def test_episodes_between_checkpoints_become_steps_of_the_longest_episodes():
    # 16,000 episodes of 81 steps and 55,000 of 251 have 15,101,000: 212.69 on average.
    config = load_config(simple())
    assert config.checkpoints.every_steps == 1_063_451
    assert config.opponents.snapshot_every_steps == 1_063_451
    short = with_value(simple(), 50, "training", "max_episode_steps")
    assert load_config(short).checkpoints.every_steps == 5_000 * 50


def test_the_newer_keys_count_steps():
    data = with_value(sac(), 500_000, "training", "checkpoint_frequency")
    data["training"]["eval_frequency"] = 300_000
    data["curriculum"]["phases"][1]["clear_buffer"] = False
    config = load_config(data)
    assert config.checkpoints.every_steps == 500_000
    assert config.evaluation.every_steps == 300_000
    assert config.clear_buffer_on == {"defense": False}
    assert [config.clears_buffer(name) for name in ("defense", "normal")] == [False, True]


def test_updates_are_divided_by_the_steps_between_them():
    data = with_value(sac(), 4, "training", "train_freq")
    data["training"]["updates_per_step"] = 2
    assert load_config(data).agent.updates_per_step == 0.5


def test_random_actions_are_as_many_as_with_decay_by_the_episode():
    agent = load_config(simple()).agent
    epsilon, beyond = 1.0, 0.0
    while epsilon > 0.1:
        beyond += (epsilon - 0.1) * 81
        epsilon *= 0.9995
    assert (agent.epsilon_start, agent.epsilon_final) == (1.0, 0.1)
    # By hand: 2 * (1 - 0.1 * ln(10) / 0.9) / -ln(0.9995) = 2,975.9 episodes of 81 steps.
    assert agent.epsilon_steps == 241_047
    assert agent.epsilon_steps * 0.9 / 2 == pytest.approx(beyond, rel=1e-3)


def test_a_decay_over_several_phases_counts_the_steps_of_each():
    data = simple()
    data["curriculum"]["phases"][0]["episodes"] = 975
    data["curriculum"]["phases"][1]["environment"]["mode"] = "NORMAL"
    # 975 episodes of 81 steps, and 2,000.9 of 251.
    steps = load_config(data).agent.epsilon_steps
    assert steps == pytest.approx(975 * 81 + 2_000.9 * 251, abs=20)


@pytest.mark.parametrize(
    ("settings", "start", "final"),
    [
        ({"eps": 0.3, "eps_decay": None}, 0.3, 0.3),
        ({"eps": 0.3, "eps_decay": 1}, 0.3, 0.3),
        ({"eps": 0.05, "eps_min": 0.1}, 0.1, 0.1),
        ({"eps": 0.5, "eps_decay": 0}, 0.1, 0.1),
        ({"eps": 0.5, "eps_min": 0, "eps_decay": 0.5}, 0.5, 0.0),
        ({}, 1.0, 0.1),
    ],
)
def test_exploration_at_its_edges(settings, start, final):
    data = simple()
    data["agent"]["hyperparameters"].update(settings)
    agent = load_config(data).agent
    assert (agent.epsilon_start, agent.epsilon_final) == (start, final)


def test_shaped_rewards_follow_the_formula():
    settings = load_config(sac()).curriculum.phases[0].settings

    def at(episode):
        values = resolve(settings, episode, seed=0, env_index=0, episode=0)
        return [values[f"{name}_weight"] for name in ("closeness", "touch", "direction")]

    assert at(0) == at(599) == at(600) == [20.0, 15.0, 0.0]
    # A quarter of the way: 0.75 * 20 + 0.25 * 1.5; 0.75 * 15 + 0.25 * 1; 0.25 * 2.
    assert at(700) == pytest.approx([15.375, 11.5, 0.5])
    assert at(999) == pytest.approx([1.54625, 1.035, 1.995])
    assert at(1_000) == at(10_000) == [1.5, 1.0, 2.0]


def test_shaped_rewards_may_begin_with_a_direction_and_change_at_once():
    data = sac()
    shaping = {**SHAPING, "DIRECTION_START": 0.5, "K": 0}
    data["curriculum"]["phases"][0]["reward_shaping"] = shaping
    direction = load_config(data).curriculum.phases[0].settings["direction_weight"]
    assert [direction.at(episode) for episode in (0, 599, 600)] == [0.5, 0.5, 2.0]
    shaping["N"] = 0
    assert load_config(data).curriculum.phases[0].settings["direction_weight"] == 2.0
    assert isinstance(direction, Ramp)


@pytest.mark.parametrize(
    ("opponent", "name"),
    [
        ({"type": "self_play"}, "caller:newest"),
        ({"type": "self_play", "checkpoint": None}, "caller:newest"),
        ({"type": "self_play", "checkpoint": "latest"}, "caller:newest"),
        ({"type": "self_play", "checkpoint": "runs/a", "agent_type": "SAC"}, "caller:runs/a"),
        ({"type": "archive"}, "caller:archive"),
        ({"type": "run_checkpoints"}, "caller:pool"),
    ],
)
def test_neural_opponents_are_played_by_the_training(opponent, name):
    config = load_config(self_play(opponent))
    assert neural_opponents(config) == (name,)
    assert config.env_kwargs == {"players": "both"}
    assert config.opponents.deterministic
    assert config.opponents.archive == ("archive" if name == "caller:archive" else None)


def test_neural_and_scripted_opponents_mix():
    mixture = weighted(("basic_strong", 0.5), ("self_play", 0.505), ("none", 0))
    mixture["opponents"][1]["deterministic"] = False
    config = load_config(self_play(mixture))
    setting = config.curriculum.phases[0].settings["opponent"]
    assert setting == Mixed(("strong", "caller:newest"), (0.5, 0.505))
    assert not config.opponents.deterministic


def test_opponents_that_play_differently_are_refused():
    one, other = ({"type": "self_play", "deterministic": choice} for choice in (True, False))
    (line,) = problems_of(self_play(one, {"type": "self_play"}, other))
    assert line.startswith("curriculum.phases[2].opponent.deterministic: is False and ")


def test_samples_are_mirrored_if_a_phase_has_no_opponent():
    assert load_config(sac()).agent.mirror
    assert not load_config(self_play({"type": "basic_weak"})).agent.mirror


@pytest.mark.parametrize(
    ("common", "own", "rate"),
    [({}, {}, 3e-4), ({"learning_rate": 1e-3}, {}, 1e-3), ({}, {"learning_rate": 1e-3}, 1e-3)],
)
def test_what_is_said_wins_over_what_is_not(common, own, rate):
    data = with_value(sac(), common, "hyperparameters")
    data["agent"]["hyperparameters"] = own
    assert load_config(data).agent.learning_rate == rate
    assert load_config(without(data, "hyperparameters")).agent.batch_size == 256


def test_two_places_that_disagree_are_refused():
    data = sac()
    data["agent"]["hyperparameters"].update(learning_rate=3e-4, batch_size=64)
    assert problems_of(data) == [
        "agent.hyperparameters.batch_size: is 64 and hyperparameters.batch_size is 256. Keep one "
        "of them."
    ]


@pytest.mark.parametrize("name", ["hidden_dim", "hidden_sizes", "hidden_dims", "layers"])
def test_layers_have_several_names(name):
    data = without(simple(), "agent", "hyperparameters", "hidden_dim")
    data["agent"]["hyperparameters"][name] = [32, 16]
    assert load_config(data).agent.hidden_sizes == (32, 16)
    data["agent"]["hyperparameters"][name] = 64
    assert load_config(data).agent.hidden_sizes == (64, 64)


def test_two_names_of_one_setting_must_agree():
    data = with_value(simple(), [32], "agent", "hyperparameters", "layers")
    assert problems_of(data) == [
        "agent.hyperparameters.layers: is another name of hidden_dim, which says otherwise. Keep "
        "one."
    ]


def test_lists_of_values_to_try_are_refused_with_a_reason():
    data = with_value(simple(), [1e-4, 1e-3], "hyperparameters", "learning_rate")
    data["agent"]["hyperparameters"].update(hidden_dim=[[64, 64], [128]], eps_decay=[0.9, 0.99])
    lines = problems_of(data)
    assert [line.split(":")[0] for line in lines] == [
        "hyperparameters.learning_rate",
        "agent.hyperparameters.hidden_dim[0]",
        "agent.hyperparameters.hidden_dim[1]",
        "agent.hyperparameters.eps_decay",
    ]
    assert all("values to try, and a config has one: choose one" in line for line in lines)


PHASES = ("curriculum", "phases")


@pytest.mark.parametrize(
    ("data", "path", "reason"),
    [
        (without(sac(), "training"), "training", "is missing"),
        (without(sac(), "agent"), "agent", "is missing"),
        (without(sac(), "curriculum"), "curriculum", "is missing"),
        (without(sac(), *PHASES), "curriculum.phases", "is missing"),
        (with_value(simple(), [], *PHASES), "curriculum.phases", "at least one"),
        (with_value(sac(), 3, *PHASES, 0), "curriculum.phases[0]", "an object"),
        (without(sac(), *PHASES, 1, "name"), "curriculum.phases[1].name", "is missing"),
        (with_value(sac(), "", *PHASES, 1, "name"), "curriculum.phases[1].name", "not be empty"),
        (with_value(sac(), "normal", *PHASES, 1, "name"), "curriculum.phases[2].name", "earlier"),
        (with_value(sac(), 0, *PHASES, 1, "episodes"), "curriculum.phases[1].episodes", "at least"),
        (
            with_value(sac(), {}, *PHASES, 1, "environment"),
            "curriculum.phases[1].environment.mode",
            "or a mixture",
        ),
        (
            with_value(sac(), "NORMALLY", *PHASES, 1, "environment", "mode"),
            "curriculum.phases[1].environment.mode",
            "Did you mean 'NORMAL'?",
        ),
        (
            with_value(sac(), [{"mode": "NORMAL"}], *PHASES, 1, "environment", "mixture"),
            "curriculum.phases[1].environment.mixture",
            "beside mode",
        ),
        (
            with_value(
                sac(), {"mixture": [{"mode": "NORMAL", "weight": 0}]}, *PHASES, 1, "environment"
            ),
            "curriculum.phases[1].environment.mixture",
            "no weight above 0",
        ),
        (
            with_value(sac(), "basic_storng", *PHASES, 2, "opponent", "type"),
            "curriculum.phases[2].opponent.type",
            "Did you mean 'basic_strong'?",
        ),
        (
            with_value(sac(), "heavy", *PHASES, 2, "opponent", "weight"),
            "curriculum.phases[2].opponent.weight",
            "must be finite and at least 0; got 'heavy'",
        ),
        (
            with_value(sac(), [], *PHASES, 2, "opponent", "opponents"),
            "curriculum.phases[2].opponent.opponents",
            "belongs to the type weighted_mixture",
        ),
        (
            with_value(sac(), weighted(("none", 0.5)), *PHASES, 2, "opponent"),
            "curriculum.phases[2].opponent.opponents",
            "sum to 0.5",
        ),
        (
            self_play({"type": "archive", "distribution": {"pfsp": 1}}),
            "curriculum.phases[0].opponent.distribution",
            "Leave it out",
        ),
        (
            without(sac(), *PHASES, 0, "reward_shaping", "TOUCH_FINAL"),
            "curriculum.phases[0].reward_shaping.TOUCH_FINAL",
            "is missing",
        ),
        (with_value(sac(), "TD3", "agent", "type"), "agent.type", "Use SAC"),
        (with_value(sac(), "SARSA", "agent", "type"), "agent.type", "one of DDDQN, SAC"),
        (with_value(sac(), 0, "training", "train_freq"), "training.train_freq", "at least 1"),
        (with_value(sac(), 0, "training", "reward_scale"), "training.reward_scale", "above 0"),
        (
            with_value(simple(), 9, "training", "checkpoint_frequency"),
            "training.checkpoint_frequency",
            "beside checkpoint_save_freq",
        ),
        (
            with_value(simple(), 0.005, "agent", "hyperparameters", "tau"),
            "agent.hyperparameters.tau",
            "unknown key. It is a setting of SAC",
        ),
        (
            with_value(sac(), 0.5, "agent", "hyperparameters", "eps"),
            "agent.hyperparameters.eps",
            "unknown key. It is a setting of DDDQN",
        ),
        (
            with_value(simple(), 2, "agent", "hyperparameters", "action_fineness"),
            "agent.hyperparameters.action_fineness",
            "at least 3",
        ),
        (
            with_value(simple(), 1, "agent", "hyperparameters", "reward_clip"),
            "agent.hyperparameters.reward_clip",
            "reward_scale",
        ),
        (
            with_value(sac(), 100, "agent", "hyperparameters", "buffer_size"),
            "agent.hyperparameters",
            "at least batch_size",
        ),
        (with_value(sac(), 1, "hyperparameter"), "hyperparameter", "Did you mean"),
        (with_value(sac(), 1, "training", "train_frq"), "training.train_frq", "Did you mean"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(data, path, reason):
    (line,) = problems_of(data)
    assert line.startswith(f"{path}: ")
    assert reason in line


def test_all_problems_of_a_file_are_listed_at_once(tmp_path):
    data = simple()
    phases = data["curriculum"]["phases"]
    del phases[0]["name"]
    phases[1]["episodes"] = "many"
    phases[2]["opponent"]["opponents"][0]["weight"] = 0.5
    phases[3]["environment"]["keepmode"] = True
    phases.append({})
    data["agent"]["type"] = "TD3"
    data["training"]["updates_per_step"] = -1
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError) as refusal:
        load_config(path)
    first, *lines = str(refusal.value).splitlines()
    assert first == f"10 problems in {path}; nothing was started:"
    assert [line.strip().split(":")[0] for line in lines] == [
        "curriculum.phases[0].name",
        "curriculum.phases[1].episodes",
        "curriculum.phases[2].opponent.opponents",
        "curriculum.phases[3].environment.keepmode",
        "curriculum.phases[4].name",
        "curriculum.phases[4].episodes",
        "curriculum.phases[4].environment",
        "curriculum.phases[4].opponent",
        "training.updates_per_step",
        "agent.type",
    ]


def test_prioritised_replay_keeps_its_names():
    data = simple()
    data["agent"]["hyperparameters"].update(use_per=True, per_alpha=0.5, per_beta=0.9)
    agent = load_config(data).agent
    assert agent.prioritised
    assert (agent.priority_exponent, agent.priority_correction) == (0.5, 0.9)
    assert agent.priority_correction_updates == 1_000


def test_our_own_phases_are_not_taken_for_published_ones():
    ours = {"curriculum": {"type": "phased", "phases": [{"name": "all"}]}}
    assert load_config(ours).curriculum.phases[0].name == "all"
    with pytest.raises(ConfigError, match="training: unknown key"):
        load_config({"num_envs": 4, "training": {}})
