"""The env's side: what it refuses, what it takes back, and what it tells the env."""

import math
import pickle

import numpy as np
import pytest

from stepladder.curricula import Mixed, Phase, Phased, Ramp, Stage, Staged
from stepladder.errors import BuildError, ConfigError, RecordError
from stepladder.sync import Client, EpisodeCounts, LocalHost, SharedHost
from stepladder.tasks import Task
from sync.rig import BACKENDS, IN_PROCESS, make_staged, numbered, rig

IMPOSSIBLE = [
    {"success": 1.0, "episode_return": math.nan},
    {"success": 1.0, "episode_return": math.inf},
    {"success": 1.0, "episode_return": -math.inf},
    {"success": 1.0, "length": -1},
    {"success": 1.0001},
    {"success": -0.0001},
    {"success": math.inf},
    {"success": -math.inf},
]


@pytest.mark.parametrize("numbers", IMPOSSIBLE)
def test_an_impossible_number_is_refused_and_nothing_is_posted(numbers: dict[str, float]) -> None:
    curriculum = numbered(5)
    with LocalHost(curriculum, 1) as host:
        client = host.client(0)
        draw = client.draw()
        before = host.mails.words.copy()
        with pytest.raises(RecordError, match="Nothing was reported"):
            client.finish(**numbers)  # type: ignore[arg-type]
        np.testing.assert_array_equal(host.mails.words, before)
        assert len(host.collect()) == 0
        # The episode is still in flight, and can be reported rightly.
        client.finish(success=1.0)
        assert host.collect()["episode_index"].tolist() == [draw.episode_index]


def test_the_bounds_of_all_numbers_are_allowed() -> None:
    with LocalHost(numbered(5), 1) as host:
        client = host.client(0)
        for success, episode_return, length in ((0.0, -1e300, 0), (1.0, 1e300, 2**40)):
            client.draw()
            client.finish(success=success, episode_return=episode_return, length=length)
        records = host.collect()
        assert records["success"].tolist() == [0.0, 1.0]
        assert records["length"].tolist() == [0, 2**40]


def test_success_may_be_unknown_only_where_nobody_needs_it() -> None:
    with LocalHost(numbered(5), 1) as host:
        client = host.client(0)
        client.draw()
        client.finish(success=math.nan)
        assert np.isnan(host.collect()["success"]).all()
    staged = make_staged()
    with LocalHost(staged, 2) as host:
        clients = host.clients()
        for client in clients:
            client.draw()
        clients[0].finish(success=1.0)
        # Accepted here, it would make the host refuse the whole batch when it is too late.
        with pytest.raises(RecordError, match="success nan"):
            clients[1].finish(success=math.nan)
        assert len(host.collect()) == 1
        assert staged.num_observed == 1


def test_an_episode_that_never_began_cannot_be_reported() -> None:
    with LocalHost(numbered(5), 1) as host:
        client = host.client(0)
        for act in (
            lambda: client.finish(success=1.0),
            lambda: client.fail("no reason"),
            client.skip,
        ):
            with pytest.raises(RecordError, match=r"never began: .* call draw\(\)"):
                act()
        client.draw()
        client.finish(success=1.0)
        for act in (lambda: client.finish(success=1.0), client.skip):
            with pytest.raises(RecordError, match="never began"):
                act()
        assert len(host.collect()) == 1
        assert host.counts == EpisodeCounts(1, 1, 0, 0, 0)


def test_a_draw_that_is_skipped_was_never_made_and_is_not_made_again() -> None:
    with LocalHost(numbered(5), 1) as host:
        client = host.client(0)
        first = client.draw()
        client.skip()
        assert host.counts == EpisodeCounts(0, 0, 0, 0, 0)
        with pytest.raises(RecordError, match="never began"):
            client.skip()
        second = client.draw()
        assert (first.episode_index, second.episode_index) == (0, 1)
        assert first.seed != second.seed
        client.finish(success=1.0)
        host.collect()
        assert host.counts == EpisodeCounts(1, 1, 0, 0, 0)


def test_an_episode_is_given_up_once_and_only_if_there_is_one() -> None:
    with LocalHost(numbered(5), 1) as host:
        client = host.client(0)
        client.abort()
        assert host.counts == EpisodeCounts(0, 0, 0, 0, 0)
        client.draw()
        client.abort()
        client.abort()
        assert host.counts == EpisodeCounts(1, 0, 1, 0, 0)
        client.draw()
        client.draw()
        assert host.counts == EpisodeCounts(3, 0, 2, 0, 1)


def test_with_every_task_quarantined_there_is_nothing_to_draw() -> None:
    curriculum = numbered(3)
    with LocalHost(curriculum, 1, max_failed_share=1.0) as host:
        client = host.client(0)
        for slot in range(3):
            curriculum.quarantine(slot, 0, "no such level")
        with pytest.raises(BuildError, match="no task is left to draw"):
            client.draw()
        assert host.counts == EpisodeCounts(0, 0, 0, 0, 0)


@pytest.mark.parametrize("backend", IN_PROCESS)
def test_a_client_draws_what_the_plan_says_and_knows_the_task(backend: str) -> None:
    curriculum = numbered(50)
    with rig(backend, curriculum, 2) as wired:
        draw = wired.clients[1].draw()
        assert draw.env_index == 1
        assert draw.task_id == curriculum.pool.task_ids[draw.slot]
        assert wired.clients[1].task(draw) == curriculum.task(draw)
        assert wired.clients[1].task(draw).name == f"task{draw.task_id}"


def test_a_client_that_was_used_can_be_pickled_again_and_again() -> None:
    with SharedHost(numbered(5), 1) as host:
        client: Client = host.client(0)
        for number in range(4):
            assert client.draw().episode_index == number
            client.finish(success=1.0)
            client = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(client))))
        assert host.collect()["episode_index"].tolist() == [0, 1, 2, 3]


def test_a_pickled_client_is_small_and_carries_no_memory() -> None:
    with SharedHost(numbered(100_000), 1) as host:
        client = host.client(0)
        client.draw()
        assert len(pickle.dumps(client)) < 2000


# Stages, phases and settings.


def test_without_stages_or_phases_there_are_none() -> None:
    with LocalHost(numbered(5), 1) as host:
        client = host.client(0)
        assert (client.current_stage(), client.current_phase()) == (None, None)
        assert client.stage_of("default") == "default"
        with pytest.raises(ConfigError, match="no stages"):
            client.mixing_ratio()


def test_a_client_tells_stage_and_mixing_ratio_of_now_and_of_its_draw() -> None:
    tasks = [Task(f"{label}/{i}", label) for label in ("a1", "a2", "b1") for i in range(2)]
    stages = (Stage(name="a", labels=("a1", "a2")), Stage(name="b", labels=("b1",)))
    curriculum = Staged(tasks, stages=stages)
    with LocalHost(curriculum, 1) as host:
        client = host.client(0)
        assert client.current_stage() == "a"
        curriculum.go_to("b")
        assert (client.current_stage(), client.mixing_ratio()) == ("b", 0.2)
        assert client.mixing_ratio("a") == curriculum.mixing_ratio("a")
        assert client.plan_version() == curriculum.plan.version
        assert (client.stage_of("a2"), client.stage_of("b1")) == ("a", "b")
        with pytest.raises(ConfigError, match="unknown stage 'c'"):
            client.mixing_ratio("c")


def make_phased() -> Phased:
    tasks = [Task(f"{label}/{i}", label, {"speed": 1}) for label in "ab" for i in range(3)]
    return Phased(
        tasks,
        seed=5,
        phases=(
            Phase(
                name="first",
                mixture={"a": 1.0},
                episodes=8,
                settings={
                    "opponent.name": Mixed(("weak", "strong")),
                    "shaping": Ramp(start=1.0, end=0.0, ramp_episodes=8),
                },
            ),
            Phase(name="second", mixture={"b": 1.0}, settings={"speed": 2}),
        ),
    )


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("backend", [b for b in BACKENDS if not b.endswith(("spawn", "server"))])
def test_a_task_comes_with_the_settings_of_its_phase_and_episode(backend: str) -> None:
    curriculum = make_phased()
    with rig(backend, curriculum, 2) as wired:
        opponents = set()
        for episode in range(4):
            for client in wired.clients:
                params = client.task(client.draw()).params
                assert client.current_phase() == "first"
                assert params["speed"] == 1
                assert params["shaping"] == pytest.approx(1 - 2 * episode / 8)
                opponents.add(params["opponent"]["name"])
                client.finish(success=1.0)
            wired.host.collect()
        assert opponents == {"weak", "strong"}
        for client in wired.clients:
            assert client.current_phase() == "second"
            assert client.task(client.draw()).params == {"speed": 2}


def test_a_task_keeps_the_settings_of_its_draw_when_the_phase_changes_meanwhile() -> None:
    curriculum = make_phased()
    with LocalHost(curriculum, 2) as host:
        early, other = host.clients()
        draw = early.draw()
        before = early.task(draw)
        for _ in range(8):
            other.draw()
            other.finish(success=1.0)
        host.collect()
        assert early.current_phase() == "second"
        assert early.task(draw) == before
        assert "opponent" in before.params


def test_a_restored_episode_is_played_with_the_settings_it_was_drawn_with() -> None:
    curriculum = make_phased()
    with LocalHost(curriculum, 2) as host:
        early, other = host.clients()
        draw = early.draw()
        before = early.task(draw)
        for _ in range(8):
            other.draw()
            other.finish(success=1.0)
        snapshot = host.snapshot()
    restored = make_phased()
    with LocalHost(restored, 2) as host:
        host.restore(snapshot)
        assert restored.current_phase == "second"
        client = host.client(0)
        assert client.draw() == draw
        assert client.task(draw) == before
