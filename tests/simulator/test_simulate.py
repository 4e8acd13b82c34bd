"""Simulations from end to end: what is logged, what the folder holds, what the verdict says."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from stepladder.curricula import (
    Frontier,
    FrontierConfig,
    LearningProgress,
    Stage,
    StagedConfig,
    UniformConfig,
)
from stepladder.errors import ConfigError, RunError
from stepladder.runs import RunReader
from stepladder.simulator import (
    Epochwise,
    GraphScenario,
    Prerequisite,
    SimulationConfig,
    TaskGraph,
    recipe,
    simulate,
)
from stepladder.stats.metrics import find
from stepladder.stats.names import MAX_PER_FAMILY

QUICK = {"num_epochs": 3, "samples_per_epoch": 5, "num_envs": 4, "engine": "direct"}
TIMED = ("metric/total_time", "overview/steps_per_second")


def untimed(history: list[dict[str, float]]) -> list[dict[str, float]]:
    return [
        {name: value for name, value in logged.items() if name not in TIMED} for logged in history
    ]


# What is logged.


def test_by_default_learning_progress_plays_the_ten_chain_in_eight_envs():
    config = SimulationConfig()
    assert (config.scenario, config.num_envs, config.engine) == ("chain-10", 8, "envs")
    result = simulate(num_epochs=2)
    assert isinstance(result.curriculum, LearningProgress)
    assert result.simulator.num_tasks == 10
    assert result.simulator.num_plays == 2 * 25 * 8
    assert result.run_folder is None


def test_agent_step_counts_every_env():
    # Defect 6 of the ancestor: the x-axis left out the number of envs.
    result = simulate(**QUICK)
    assert result.metric("metric/agent_step") == [20.0, 40.0, 60.0]
    assert result.metric("metric/epoch") == [1.0, 2.0, 3.0]
    assert result.metric("env_task_dependency/total_samples") == [20.0, 40.0, 60.0]
    assert result.metric("env_curriculum_stats/total_completions") == [20.0, 40.0, 60.0]


@pytest.mark.parametrize(
    "curriculum",
    [
        None,
        UniformConfig(),
        FrontierConfig(),
        StagedConfig(stages=tuple(Stage(name=f"taskclass{node}") for node in range(10))),
    ],
    ids=lambda config: type(config).__name__,
)
def test_everything_that_is_logged_is_declared(curriculum, caplog):
    # Defect 6 again: half of what was measured was dropped for want of a name.
    with caplog.at_level("INFO", logger="stepladder.stats"):
        result = simulate(curriculum=curriculum, **QUICK)
    for name in result.history[-1]:
        assert find(name) is not None, name
    assert "Undeclared" not in caplog.text


def test_the_names_of_the_seed_are_there():
    names = simulate(num_epochs=2).history[-1].keys()
    assert names >= {
        "metric/agent_step",
        "metric/epoch",
        "overview/reward",
        "overview/mean_performance",
        "overview/tasks_above_threshold",
        "overview/sampling_entropy_normalized",
        "env_curriculum_stats/sampling_gini",
        "env_curriculum_stats/pool_occupancy_gini",
        "env_curriculum_stats/pool_lp_gini",
        "env_curriculum_stats/mean_lp_score",
        "env_curriculum_stats/per_label_lp_scores/taskclass9",
        "env_curriculum_stats/per_label_samples/taskclass0",
        "env_curriculum_stats/tracked_task_lp_scores/task_0",
        "env_task_dependency/performance",
        "env_task_dependency/per_label_performance/taskclass3",
    }


def test_ginis_are_measured_and_not_always_zero():
    # Defect 6: the ancestor read them from where they no longer were.
    result = simulate(num_epochs=20, engine="compiled")
    for name in ("sampling_gini", "pool_occupancy_gini", "pool_lp_gini"):
        assert 0.0 < max(result.metric(f"env_curriculum_stats/{name}")) < 1.0


def test_plays_are_conserved():
    result = simulate(num_epochs=4, samples_per_epoch=10, num_envs=3, scenario="tree-7")
    counts = result.simulator.get_summary()["sample_counts"]
    assert sum(counts) == result.simulator.num_plays == result.curriculum.num_observed == 120
    for node in range(7):
        by_epoch = result.metric(f"env_curriculum_stats/per_label_samples/taskclass{node}")
        assert sum(by_epoch) == counts[node]


def test_shares_are_those_of_the_epoch():
    place = GraphScenario(name="split", graph=TaskGraph.independent(2), impossible=(1,))
    result = simulate(place=place, curriculum=UniformConfig(), **QUICK)
    hopeless = result.metric("env_task_dependency/share_impossible")
    by_epoch = result.metric("env_curriculum_stats/per_label_samples/taskclass1")
    assert hopeless == pytest.approx([plays / 20 for plays in by_epoch])
    assert len(set(hopeless)) > 1


def test_all_engines_log_the_same():
    logged = {
        engine: untimed(simulate(**(QUICK | {"engine": engine, "num_epochs": 6})).history)
        for engine in ("compiled", "direct", "envs")
    }
    for engine in ("compiled", "envs"):
        assert len(logged[engine]) == 6
        for found, expected in zip(logged[engine], logged["direct"], strict=True):
            assert found == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_worker_processes_with_shared_memory_log_the_same():
    expected = untimed(simulate(**QUICK).history)
    found = untimed(simulate(**(QUICK | {"engine": "envs", "num_workers": 1})).history)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, nan_ok=True)


def test_the_seed_seeds_the_learner_and_the_curriculum():
    # Defect 5 of the ancestor: its seed did not reach the curriculum, and 0 meant none.
    runs = [untimed(simulate(seed=seed, **QUICK).history) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]
    result = simulate(seed=7, **QUICK)
    assert result.simulator.seed == result.curriculum.seed == 7


def test_more_tasks_than_names_are_logged_together():
    result = simulate(scenario="independent-130", **QUICK)
    prefix = "env_task_dependency/per_label_performance"
    names = [name for name in result.history[-1] if name.startswith(prefix)]
    assert len(names) == MAX_PER_FAMILY + 1
    assert result.history[-1][f"{prefix}/other"] == pytest.approx(
        result.simulator.P[MAX_PER_FAMILY:].mean()
    )


def test_everybody_is_told_of_every_epoch():
    told = []
    result = simulate(on_epoch=lambda epoch, logged: told.append((epoch, logged)), **QUICK)
    assert [epoch for epoch, _ in told] == [0, 1, 2]
    assert [logged for _, logged in told] == result.history


def test_it_stops_when_all_is_mastered_if_asked_to():
    settings = {"scenario": "chain-2", "num_epochs": 60, "engine": "compiled"}
    short = simulate(stop_when_mastered=True, **settings)
    whole = simulate(**settings)
    assert len(whole.history) == 60
    assert len(short.history) < 60
    assert short.simulator.done_at == whole.simulator.done_at
    # The epoch in which it happened is played to its end.
    assert short.simulator.num_plays == 200 * len(short.history)
    assert short.simulator.num_plays - 200 < short.simulator.done_at


def test_epochs_are_counted():
    assert simulate(**QUICK).simulator.get_summary()["num_epochs_completed"] == 3


# The ancestor's recipe.


@pytest.mark.slow
def test_the_ancestors_recipe_runs_through_its_own_equations():
    train = recipe("train")
    place = GraphScenario(
        name="ancestor", graph=TaskGraph.chain(10), dynamics=train.dynamics, noise=train.noise
    )
    result = simulate(
        place=place,
        curriculum=UniformConfig(),
        num_envs=train.num_envs,
        num_epochs=train.num_epochs,
        samples_per_epoch=train.dynamics.samples_per_epoch,
        engine="compiled",
    )
    assert result.simulator.current_epoch == 500
    # Uniform already gets there, as it did then.
    assert result.metric("overview/mean_performance")[-1] == pytest.approx(0.951, abs=0.005)
    # And its reward saturates: 0.5 and the skill, cut off at 1.
    assert max(result.metric("overview/reward")) <= 1.0
    assert "stalls at task 0" in result.verdict.text


def test_epochs_of_the_equations_need_not_be_those_of_the_log():
    place = GraphScenario(
        name="own", graph=TaskGraph.chain(2), dynamics=Epochwise(samples_per_epoch=10, dt=1.0)
    )
    result = simulate(place=place, num_envs=2, num_epochs=11, samples_per_epoch=3, engine="direct")
    # 66 plays are logged 6 by 6; the equations take them 20 by 20.
    assert len(result.history) == 11
    assert result.simulator.current_epoch == 3
    performances = result.metric("overview/mean_performance")
    changes = [epoch for epoch in range(1, 11) if performances[epoch] != performances[epoch - 1]]
    # Plays 20, 40 and 60 fall into the fourth, seventh and tenth epoch of the log.
    assert changes == [3, 6, 9]


# The run folder.


@pytest.fixture
def kept(tmp_path: Path) -> tuple[RunReader, object]:
    result = simulate(
        SimulationConfig(scenario="impossible-3", num_epochs=12, engine="direct", seed=4),
        FrontierConfig(),
        run_folder=tmp_path / "run",
        keep_records=True,
    )
    return RunReader(tmp_path / "run"), result


def test_a_run_says_what_it_was(kept):
    reader, result = kept
    assert (reader.kind, reader.seed, reader.status) == ("simulation", 4, "finished")
    assert result.run_folder == Path(reader.folder)
    assert reader.config["simulation"]["scenario"] == "impossible-3"
    assert reader.config["simulation"]["num_envs"] == 8
    assert reader.config["curriculum"]["type"] == "frontier"
    assert reader.config["simulator"] == result.simulator.describe()
    json.dumps(reader.config, allow_nan=False)


def test_a_run_holds_every_metric_of_every_epoch(kept):
    reader, result = kept
    assert set(reader.metric_names()) == set().union(*result.history)
    steps, values = reader.metric("overview/mean_performance")
    assert steps.tolist() == [200 * epoch for epoch in range(1, 13)]
    assert values.tolist() == result.metric("overview/mean_performance")


def test_a_run_holds_tables_of_all_tasks(kept):
    reader, result = kept
    # One after ten epochs, and always the last.
    assert reader.task_steps() == [2000, 2400]
    table = reader.tasks()
    assert list(table["task"]) == [f"taskclass{node}" for node in range(6)]
    assert list(table["samples"]) == result.simulator.get_summary()["sample_counts"]


def test_a_run_holds_every_record_if_asked_to(kept):
    reader, result = kept
    assert reader.num_records == len(reader.records()) == 2400
    counts = np.bincount(reader.records()["slot"], minlength=6).tolist()
    assert counts == result.simulator.get_summary()["sample_counts"]


def test_a_run_holds_the_verdict_and_the_curriculums_own_words(kept):
    reader, result = kept
    assert [event.text for event in reader.events("verdict")] == [result.verdict.text]
    assert "Frontier" in reader.events("explanation")[0].text


def test_a_run_holds_the_curriculum(kept):
    reader, result = kept
    again = Frontier(result.simulator.source(), seed=4)
    again.restore(reader.checkpoint("last"))
    assert again.probs().tolist() == result.curriculum.probs().tolist()
    assert reader.checkpoint_step("last") == 2400


def test_the_curriculum_can_be_used_when_the_run_is_closed(kept):
    _, result = kept
    draw = result.curriculum.draw_one()
    result.curriculum.report(draw, 1.0)
    assert result.curriculum.num_observed == 2401


def test_a_scenario_of_ones_own_is_named_in_the_run(tmp_path: Path):
    place = GraphScenario(name="mine", graph=TaskGraph.chain(2))
    simulate(place=place, run_folder=tmp_path / "run", **QUICK)
    assert RunReader(tmp_path / "run").config["simulation"]["scenario"] == "mine"


def test_stage_changes_are_events(tmp_path: Path):
    stages = tuple(Stage(name=f"taskclass{node}") for node in range(3))
    config = StagedConfig(stages=stages, threshold=0.6, min_episodes=10)
    result = simulate(
        SimulationConfig(scenario="chain-3", num_epochs=10, engine="envs"),
        config,
        run_folder=tmp_path / "run",
    )
    advanced = RunReader(tmp_path / "run").events("stage_advanced")
    assert len(advanced) == len(result.curriculum.history) == 2
    assert [event.data["to_stage"] for event in advanced] == ["taskclass1", "taskclass2"]


def test_a_run_is_not_overwritten_unasked(tmp_path: Path):
    simulate(run_folder=tmp_path / "run", **QUICK)
    with pytest.raises(RunError):
        simulate(run_folder=tmp_path / "run", **QUICK)
    simulate(run_folder=tmp_path / "run", overwrite=True, seed=9, **QUICK)
    assert RunReader(tmp_path / "run").seed == 9


class Ear:
    """A logger that remembers."""

    def __init__(self):
        self.steps, self.events, self.is_closed = [], [], False

    def log(self, step, metrics):
        self.steps.append((step, metrics["overview/mean_performance"]))

    def event(self, step, kind, text):
        self.events.append(kind)

    def close(self):
        self.is_closed = True


def test_loggers_are_told_while_it_runs(tmp_path: Path):
    # Defect 6 of the ancestor: everything was kept in memory and logged after the end.
    ear = Ear()
    result = simulate(run_folder=tmp_path / "run", loggers=[ear], **QUICK)
    assert ear.steps == list(
        zip([20, 40, 60], result.metric("overview/mean_performance"), strict=True)
    )
    assert "verdict" in ear.events
    assert ear.is_closed


def test_a_run_can_be_read_while_it_is_written(tmp_path: Path):
    seen = []

    def look(epoch, logged):
        seen.append(RunReader(tmp_path / "run").status)

    simulate(run_folder=tmp_path / "run", on_epoch=look, **QUICK)
    assert seen == ["running"] * 3


def test_a_simulation_that_fails_leaves_a_run_that_says_so(tmp_path: Path):
    def fail(epoch, logged):
        raise RuntimeError("the lights went out")

    with pytest.raises(RuntimeError, match="the lights went out"):
        simulate(run_folder=tmp_path / "run", on_epoch=fail, **QUICK)
    reader = RunReader(tmp_path / "run")
    assert reader.status == "failed: RuntimeError: the lights went out"
    assert reader.metric("metric/epoch")[1].tolist() == [1.0]


# What is refused, before anything is written.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenario": "rope-3"}, "there is no scenario 'rope-3'"),
        ({"num_envs": 0}, "num_envs"),
        ({"num_epochs": 0}, "num_epochs"),
        ({"samples_per_epoch": 1.5}, "samples_per_epoch"),
        ({"seed": -1}, "seed"),
        ({"engine": "gpu"}, "engine must be 'compiled', 'direct' or 'envs'; got 'gpu'"),
        ({"engine": "direct", "num_workers": 1}, "has no envs to put into workers"),
        ({"epochs": 3}, "epochs: unknown key"),
        ({"config": SimulationConfig(), "seed": 1}, "seed was given in addition to a config"),
        ({"engine": "compiled", "keep_records": True}, "keep_records needs a run folder"),
        ({"curriculum": 7}, "curriculum must be a CurriculumConfig; got 7"),
        ({"curriculum": "fronteer"}, "that brings it. Did you mean 'frontier'?"),
        ({"place": "chain-3"}, "place must be a Scenario; got 'chain-3'"),
        (
            {"engine": "compiled", "curriculum": StagedConfig(stages=(Stage(name="taskclass0"),))},
            "Staged has no compiled form",
        ),
    ],
)
def test_impossible_simulations_are_refused_and_leave_nothing_behind(
    tmp_path: Path, arguments, message
):
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        simulate(run_folder=tmp_path / "run", **({"scenario": "chain-1"} | arguments))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_all_problems_are_reported_at_once():
    with pytest.raises(ConfigError, match="2 problems") as error:
        simulate(num_envs=0, seed=-1)
    assert [path for path, _ in error.value.problems] == ["num_envs", "seed"]


def test_what_only_a_run_can_keep_needs_a_folder():
    with pytest.raises(ConfigError, match="keep_records needs a run folder"):
        simulate(keep_records=True, **QUICK)
    with pytest.raises(ConfigError, match=r"loggers need a run.*Give run_folder"):
        simulate(loggers=[Ear()], **QUICK)


# It learns.


def test_the_frontier_masters_the_ten_chain():
    result = simulate(
        SimulationConfig(engine="compiled", num_epochs=20, samples_per_epoch=10, num_envs=8),
        FrontierConfig(),
    )
    fraction = result.metric("overview/mastered_fraction")
    assert fraction[-1] == 1.0
    assert fraction == sorted(fraction)
    assert result.verdict.text.startswith("mastered all 10 learnable tasks in ")


def test_forgetting_is_the_same_for_any_number_of_envs():
    # Defect 2 of the ancestor. Nothing is learned here, so what is left is what was not forgotten.
    place = GraphScenario(
        name="fade",
        graph=TaskGraph.chain(2),
        dynamics=Prerequisite(eta=1e-12, gamma=0.0, lambda_forget=1e-3, start=0.8),
    )
    for num_envs in (1, 10):
        result = simulate(
            place=place, num_envs=num_envs, num_epochs=1, samples_per_epoch=1000 // num_envs
        )
        assert result.simulator.P.tolist() == pytest.approx([0.8 * math.exp(-1.0005)] * 2, rel=1e-5)


def test_a_curriculum_can_be_named():
    named = simulate(curriculum="frontier", scenario="chain-3", num_epochs=2, engine="compiled")
    given = simulate(
        curriculum=FrontierConfig(), scenario="chain-3", num_epochs=2, engine="compiled"
    )
    assert named.simulator.P.tolist() == given.simulator.P.tolist()


def test_whoever_watches_can_end_it_and_everything_is_kept(tmp_path: Path):
    result = simulate(
        scenario="chain-3",
        engine="direct",
        num_epochs=50,
        run_folder=tmp_path / "run",
        on_epoch=lambda epoch, logged: epoch == 6,
    )
    assert result.was_stopped
    assert len(result.history) == 7
    reader = RunReader(tmp_path / "run")
    assert reader.status == "interrupted"
    steps = reader.metric("metric/agent_step")[0]
    # Neither the checkpoint nor the table of tasks waits for the tenth epoch.
    assert reader.checkpoint_step() == reader.task_steps()[-1] == steps[-1]


def test_loggers_are_made_once_everything_is_checked(tmp_path: Path):
    made = []
    make = lambda about: made.append(about) or []  # noqa: E731
    with pytest.raises(ConfigError, match="no compiled form"):
        simulate(curriculum="staged", engine="compiled", run_folder=tmp_path / "run", loggers=make)
    assert made == []
    simulate(engine="compiled", num_epochs=1, run_folder=tmp_path / "run", loggers=make)
    assert made[0]["simulation"]["scenario"] == "chain-10"


def test_what_a_frontier_found_and_mastered_is_kept_as_events(tmp_path: Path):
    result = simulate(
        curriculum="frontier",
        scenario="chain-3",
        engine="direct",
        num_epochs=20,
        run_folder=tmp_path / "run",
    )
    assert result.curriculum.states() == ["mastered"] * 3
    events = RunReader(tmp_path / "run").events("task_mastered")
    assert {event.data["task"] for event in events} == {"taskclass0", "taskclass1", "taskclass2"}
    assert "to mastered: it is mastered (success 0.9" in events[0].text


def test_replacements_are_kept_as_events(tmp_path: Path):
    result = simulate(
        curriculum="frontier",
        scenario="pool-30",
        engine="compiled",
        num_epochs=20,
        run_folder=tmp_path / "run",
    )
    told = RunReader(tmp_path / "run").events("replaced")
    assert sum(event.data["num_replaced"] for event in told) == result.curriculum.num_evicted > 0
