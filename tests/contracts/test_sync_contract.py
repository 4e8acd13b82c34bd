"""What every backend of `sync` must do: the invariants of the channel, one by one."""

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepladder.curricula import Mixing, Staged
from stepladder.errors import BuildError, ChannelError, SnapshotError
from stepladder.plans.record import Record
from stepladder.saving.snapshot import Snapshot
from stepladder.sync import Host, LocalHost, PushedHost, SharedHost
from sync.rig import (
    BACKENDS,
    CURRICULA,
    IN_PROCESS,
    STAGES,
    Script,
    Trace,
    assert_same_snapshot,
    dismiss,
    forked,
    make_staged,
    numbered,
    patiently,
    play,
    play_freely,
    receive,
    rig,
    watch,
)

NUM_ENVS = 4

pytestmark = [
    pytest.mark.processes,
    pytest.mark.timeout(60),
    # Python 3.12 and later warn of it; the time limit of a test is a thread.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def _workers_go_home() -> Iterator[None]:
    yield
    dismiss()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=CURRICULA)
def make(request: pytest.FixtureRequest) -> Callable[[], Any]:
    return CURRICULA[request.param]


# Conservation, order, determinism.


def traced(backend: str, make: Callable[[], Any], **settings: Any) -> Trace:
    curriculum = make()
    with rig(backend, curriculum, NUM_ENVS, **settings) as wired:
        return play(wired, curriculum, 120)


def test_every_episode_is_observed_once_in_env_order_and_all_draws_are_accounted_for(
    backend: str, make: Callable[[], Any]
) -> None:
    # `play` compares every collection and all counts with a model of its own.
    trace = traced(backend, make)
    assert trace.counts is not None
    assert trace.counts.finished > 80
    assert min(trace.counts.aborted, trace.counts.failed, trace.counts.in_flight) > 0


def test_every_backend_draws_the_same_tasks_and_collects_the_same_records(
    backend: str, make: Callable[[], Any]
) -> None:
    assert traced(backend, make) == traced("local", make)


@pytest.mark.parametrize("num_workers", [1, 2, 4])
@pytest.mark.parametrize("kind", ["shared-fork", "pushed-fork"])
def test_the_number_of_processes_changes_nothing(kind: str, num_workers: int) -> None:
    assert traced(kind, make_staged, num_workers=num_workers) == traced("local", make_staged)


def test_another_seed_draws_other_tasks() -> None:
    other = traced("local", lambda: make_staged(seed=4))
    assert [draw.slot for draw in other.draws] != [
        draw.slot for draw in traced("local", make_staged).draws
    ]


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_that_run_freely_lose_nothing_and_double_nothing(method: str) -> None:
    curriculum, num_episodes = CURRICULA["crowded"](), 600
    with rig(f"shared-{method}", curriculum, NUM_ENVS) as wired:
        workers, host = wired.workers, wired.host
        assert workers is not None
        for worker in range(2):
            workers.tell(worker, "run", play_freely, (num_episodes, 5))
        collected: list[Record] = []
        for _ in patiently():
            if all(workers.has_answer(worker) for worker in range(2)):
                break
            collected += [Record(*row) for row in host.collect().tolist()]
            counts = host.counts
            assert counts.in_flight >= 0
            assert counts.finished == len(collected)
        lives = [life for worker in range(2) for life in workers.answer(worker)]
        collected += [Record(*row) for row in host.collect().tolist()]
        counts = host.counts
    for env_index, life in enumerate(lives):
        finished = [draw for what, draw in life if what == "finished"]
        mine = [record for record in collected if record.env_index == env_index]
        assert [(r.slot, r.generation, r.plan_version, r.episode_index) for r in mine] == [
            (d.slot, d.generation, d.plan_version, d.episode_index) for d in finished
        ]
        assert [r.episode_return for r in mine] == [float(d.seed % 1000) for d in finished]
        assert [draw.episode_index for _, draw in life] == list(range(num_episodes))
    became = [what for life in lives for what, _ in life]
    num_playing = sum(life[-1][0] == "left" for life in lives)
    assert counts.started == NUM_ENVS * num_episodes
    assert counts.finished == became.count("finished") == curriculum.num_observed
    assert counts.failed == became.count("failed")
    assert (counts.in_flight, counts.aborted) == (num_playing, became.count("left") - num_playing)
    # Each failure carries the message of its own episode.
    reasons = {entry.reason for entry in curriculum.quarantined}
    failures = {
        f"{d.env_index}/{d.episode_index}" for life in lives for w, d in life if w == "failed"
    }
    assert reasons <= failures
    assert len(reasons) == len(curriculum.quarantined)


# Credit.


def test_a_task_replaced_while_in_flight_is_never_credited_to_its_successor(backend: str) -> None:
    curriculum = CURRICULA["crowded"]()
    with rig(backend, curriculum, NUM_ENVS) as wired:
        draws = [client.draw() for client in wired.clients]
        slot = draws[1].slot
        generation = curriculum.replace(slot)
        wired.host.collect(ended=False)
        for client in wired.clients:
            client.finish(success=1.0)
        records = [Record(*row) for row in wired.host.collect().tolist()]
        assert [(r.slot, r.generation) for r in records] == [(d.slot, d.generation) for d in draws]
        num_lost = sum(draw.slot == slot for draw in draws)
        assert curriculum.num_orphaned == num_lost >= 1
        assert curriculum.num_observed == NUM_ENVS
        assert curriculum.plays[slot] == 0
        assert curriculum.plays.sum() == NUM_ENVS - num_lost
        for _ in range(200):
            draw = wired.clients[0].draw()
            if draw.slot == slot:
                break
        assert (draw.slot, draw.generation) == (slot, generation)
        assert draw.task_id == curriculum.pool.task_ids[slot]


# Freshness.


def test_a_draw_after_collection_is_never_stale_and_sees_every_result(backend: str) -> None:
    curriculum = make_staged()
    with rig(backend, curriculum, NUM_ENVS) as wired:
        for _ in range(12):
            draws = [client.draw() for client in wired.clients]
            assert {draw.plan_version for draw in draws} == {curriculum.plan.version}
            assert {draw.tick for draw in draws} == {curriculum.plan.tick}
            for client in wired.clients:
                client.finish(success=1.0)
            wired.host.collect()
        staleness = wired.host.staleness
    assert curriculum.history, "the plan never changed, so nothing could have been stale"
    assert staleness.draws_by_lag == (12 * NUM_ENVS, *[0] * 8)
    assert (staleness.mean, staleness.largest) == (0.0, 0)


def test_a_draw_before_collection_is_stale_by_exactly_one(backend: str) -> None:
    curriculum = make_staged()
    with rig(backend, curriculum, NUM_ENVS) as wired:
        for client in wired.clients:
            client.draw()
        for number in range(12):
            for client in wired.clients:
                client.finish(success=1.0)
                client.draw()
            wired.host.collect()
            # Collections that find nothing make no plan, so they make none stale either.
            for _ in range(number % 3):
                wired.host.collect()
            wired.host.snapshot()
        staleness = wired.host.staleness
    assert staleness.draws_by_lag == (NUM_ENVS, 11 * NUM_ENVS, *[0] * 7)
    assert staleness.largest == 1
    assert staleness.mean == pytest.approx(11 / 12)


# Agreement.


def test_after_every_change_all_envs_have_the_same_version_stage_and_mixing_ratio(
    backend: str,
) -> None:
    curriculum = make_staged()
    with rig(backend, curriculum, NUM_ENVS) as wired:
        rng = np.random.default_rng(0)
        versions = set()
        for number in range(40):
            if number % 4 == 0:
                curriculum.go_to(STAGES[number // 4 % 3])
            else:
                wired.clients[number % NUM_ENVS].draw()
                wired.clients[number % NUM_ENVS].finish(success=float(rng.random() < 0.5))
            wired.host.collect()
            seen = {
                (client.plan_version(), client.current_stage(), client.mixing_ratio())
                for client in wired.clients
            }
            assert seen == {
                (curriculum.plan.version, curriculum.current_stage, curriculum.mixing_ratio())
            }
            versions |= {version for version, _, _ in seen}
    assert len(versions) > 15


def hammered() -> Staged:
    """Stages whose dials say exactly which stage may be drawn.

    A ratio of 1 means the stage before and nothing else, a ratio of 0 the stage itself.
    """
    return make_staged(
        min_episodes=10**9,
        trend=None,
        demotion=None,
        window_episodes=2,
        mixing=Mixing(
            source="previous", base_ratio=0.0, table=((0.5, 1.0),), otherwise=0.0, min_results=1
        ),
    )


def hammer(curriculum: Staged, until: Callable[[], bool]) -> dict[int, tuple[float, ...]]:
    """Change stage and mixing ratio as fast as possible; return the dials of every version."""
    log = {curriculum.plan.version: tuple(curriculum.plan.dials.tolist())}
    moves = [
        lambda: curriculum.go_to("hard"),
        lambda: curriculum.record_episode("hard", 0.0),
        lambda: curriculum.go_to("easy"),
        lambda: curriculum.go_to("medium"),
        lambda: curriculum.record_episode("medium", 0.0),
        lambda: curriculum.record_episode("medium", 1.0),
    ]
    for move, _ in zip(itertools.cycle(moves), patiently(), strict=False):
        move()
        log[curriculum.plan.version] = tuple(curriculum.plan.dials.tolist())
        if until():
            break
    return log


def test_stage_mixing_ratio_and_weights_are_never_torn() -> None:
    curriculum = hammered()
    # One reader: with more of them than spare cores, nobody would run beside the writer.
    with rig("shared-fork", curriculum, NUM_ENVS, num_workers=1) as wired:
        workers = wired.workers
        assert workers is not None
        workers.tell(0, "run", watch, (100_000, 4000))
        log = hammer(curriculum, lambda: workers.has_answer(0))
        drawn, read, num_draws = workers.answer(0)
        assert wired.host.counts.started == num_draws >= 100_000
    for version, dials in read:
        assert log[version] == dials
    for version, dials, slot in drawn:
        assert log[version] == dials
        stage = int(dials[0])
        ratio = dials[1 + stage] if stage else 0.0
        # Four tasks per stage, in the order of the stages.
        assert slot // 4 == stage - ratio
    assert len({version for version, *_ in drawn}) >= 300, "the plan hardly changed meanwhile"


# Exact resume.

SAVED_AFTER, ENDED_AFTER = 45, 90
LIVES = [
    *((saved, restored) for saved in IN_PROCESS for restored in IN_PROCESS),
    ("shared-fork", "shared-fork"),
    ("shared-fork", "pushed-fork"),
    ("pushed-fork", "shared-fork"),
]


def model_of(script: Script) -> dict[str, Any]:
    names = ("observed_before", "playing", "started", "finished", "aborted", "failed")
    return {name: getattr(script, name) for name in names}


def uninterrupted(make: Callable[[], Any]) -> tuple[Trace, Trace, Snapshot]:
    """Play to the end; return what came before and after the moment of saving, and the end."""
    curriculum = make()
    with rig("local", curriculum, NUM_ENVS) as wired:
        script = Script(curriculum, 11, NUM_ENVS)
        for number in range(SAVED_AFTER):
            script.step(wired, number)
        script.collect(wired.host)
        before, script.trace = script.trace, Trace()
        for number in range(SAVED_AFTER, ENDED_AFTER):
            script.step(wired, number)
        script.collect(wired.host)
        return before, script.trace, wired.host.snapshot()


def first_life(pipe: Connection, backend: str, make: Callable[[], Any], path: Path) -> None:
    curriculum = make()
    with rig(backend, curriculum, NUM_ENVS) as wired:
        script = Script(curriculum, 11, NUM_ENVS)
        for number in range(SAVED_AFTER):
            script.step(wired, number)
        script.collect(wired.host)
        pipe.send((script.trace, model_of(script)))
        wired.host.snapshot().save(path)
        os.kill(os.getpid(), signal.SIGKILL)


def second_life(
    pipe: Connection, backend: str, make: Callable[[], Any], path: Path, model: dict[str, Any]
) -> None:
    curriculum = make()
    with rig(backend, curriculum, NUM_ENVS) as wired:
        wired.host.restore(Snapshot.load(path))
        script = Script(curriculum, 11, NUM_ENVS)
        vars(script).update(model)
        script.playing = [
            draw and client.draw()
            for draw, client in zip(model["playing"], wired.clients, strict=True)
        ]
        pipe.send(script.playing.copy())
        for number in range(SAVED_AFTER, ENDED_AFTER):
            script.step(wired, number)
        script.collect(wired.host)
        pipe.send(script.trace)
        wired.host.snapshot().save(path)


@pytest.mark.parametrize(("saved", "restored"), LIVES)
def test_a_run_killed_after_saving_goes_on_in_another_process_as_if_never_stopped(
    saved: str, restored: str, make: Callable[[], Any], tmp_path: Path
) -> None:
    path = tmp_path / "run.npz"
    before, after, final = uninterrupted(make)
    with forked(first_life, saved, make, path) as (process, pipe):
        first, model = receive(pipe)
        process.join(30)
        assert process.exitcode == -signal.SIGKILL
    assert first == before
    assert sum(draw is not None for draw in model["playing"]) >= 2, "nothing was in flight"
    with forked(second_life, restored, make, path, model) as (process, pipe):
        assert receive(pipe) == model["playing"]
        assert receive(pipe) == after
        process.join(30)
        assert process.exitcode == 0
    assert_same_snapshot(Snapshot.load(path), final)


def test_saving_changes_nothing(backend: str) -> None:
    curriculum = make_staged()
    with rig(backend, curriculum, NUM_ENVS) as wired:
        script = Script(curriculum, 11, NUM_ENVS)
        for number in range(60):
            script.step(wired, number)
            script.collect(wired.host)
            wired.host.snapshot()
    reference = make_staged()
    with rig("local", reference, NUM_ENVS) as wired:
        script_without = Script(reference, 11, NUM_ENVS)
        for number in range(60):
            script_without.step(wired, number)
            script_without.collect(wired.host)
    assert script.trace == script_without.trace


def test_a_restored_channel_can_be_restored_again(backend: str) -> None:
    curriculum = make_staged()
    with rig(backend, curriculum, NUM_ENVS) as wired:
        play(wired, curriculum, 30)
        playing = [client.draw() for client in wired.clients]
        snapshot = wired.host.snapshot()
        counts = wired.host.counts
        endings = []
        for _ in range(3):
            wired.host.restore(snapshot)
            assert wired.host.counts == counts
            assert [client.draw() for client in wired.clients] == playing
            for client in wired.clients:
                client.finish(success=1.0)
            wired.host.collect()
            endings.append([client.draw() for client in wired.clients])
        assert endings[0] == endings[1] == endings[2]


def damages() -> dict[str, Callable[[Snapshot], Snapshot]]:
    def without(name: str) -> Callable[[Snapshot], Snapshot]:
        return lambda whole: replace(
            whole, arrays={key: value for key, value in whole.arrays.items() if key != name}
        )

    def with_state(**state: Any) -> Callable[[Snapshot], Snapshot]:
        return lambda whole: replace(whole, state={**whole.state, **state})

    def with_head(path: str, value: int) -> Callable[[Snapshot], Snapshot]:
        def damage(whole: Snapshot) -> Snapshot:
            heads = field = whole.arrays["channel/heads"].copy()
            for name in path.split("."):
                field = field[name]
            field[1] = value
            return replace(whole, arrays={**whole.arrays, "channel/heads": heads})

        return damage

    def with_array(name: str, change: Callable[[Any], Any]) -> Callable[[Snapshot], Snapshot]:
        return lambda whole: replace(
            whole, arrays={**whole.arrays, name: change(whole.arrays[name])}
        )

    def without_part(name: str) -> Callable[[Snapshot], Snapshot]:
        return lambda whole: replace(
            whole, state={key: value for key, value in whole.state.items() if key != name}
        )

    return {
        "no heads": without("channel/heads"),
        "no last tick": without("channel/last_tick"),
        "no lags": without("channel/lags"),
        "heads of another shape": with_array("channel/heads", lambda heads: heads[1:]),
        "heads of another type": with_array("channel/heads", lambda heads: heads["posted"]),
        "more posted than begun": with_head("posted", 10**6),
        "posted and not there": with_head("taken", 0),
        "begun twice": with_head("started", 10**6),
        "a slot that does not exist": with_head("draw.slot", 10**6),
        "no count of failures": without_part("num_failed"),
        "a count that is none": with_state(num_finished="many"),
        "a negative count": with_state(num_failed=-1),
        "no channel": without_part("channel"),
        "no curriculum": without_part("curriculum"),
        "no method": without("curriculum/method/method"),
        "no plan": without("curriculum/plan/active"),
    }


@pytest.mark.parametrize("damage", damages())
def test_a_damaged_snapshot_is_refused_and_nothing_changes(damage: str) -> None:
    donor, curriculum = make_staged(), make_staged()
    with rig("shared", donor, NUM_ENVS) as wired:
        play(wired, donor, 40, seed=12)
        for client in wired.clients:
            client.draw()
        other = wired.host.snapshot()
    with rig("shared", curriculum, NUM_ENVS) as wired:
        play(wired, curriculum, 30)
        before, counts = wired.host.snapshot(), wired.host.counts
        with pytest.raises(SnapshotError):
            wired.host.restore(damages()[damage](other))
        assert_same_snapshot(wired.host.snapshot(), before)
        assert wired.host.counts == counts
        # The same snapshot without the damage is taken.
        wired.host.restore(other)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    with rig("local", make_staged(), NUM_ENVS) as wired:
        wired.host.snapshot().save(path)
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"something else"):
        path.write_bytes(damaged)
        with pytest.raises(SnapshotError, match="not a readable snapshot"):
            Snapshot.load(path)


def test_another_number_of_envs_is_refused(backend: str) -> None:
    with rig("local", make_staged(), NUM_ENVS + 1) as wired:
        snapshot = wired.host.snapshot()
    curriculum = make_staged()
    with rig(backend, curriculum, NUM_ENVS) as wired:
        wired.clients[0].draw()
        before = wired.host.snapshot()
        with pytest.raises(SnapshotError, match="made with 5 envs and this channel has 4"):
            wired.host.restore(snapshot)
        assert_same_snapshot(wired.host.snapshot(), before)


# One channel at a time, and its end.

HOSTS: list[type[Host]] = [LocalHost, SharedHost, PushedHost]


@pytest.mark.parametrize("first", HOSTS)
@pytest.mark.parametrize("second", HOSTS)
def test_two_hosts_on_one_curriculum_are_refused_until_the_first_is_closed(
    first: type[Host], second: type[Host]
) -> None:
    curriculum = numbered(5)
    with first(curriculum, 2) as host:
        client = host.client(0)
        with pytest.raises(ChannelError, match="already carried"):
            second(curriculum, 2)
        # The refused one has not got in the way of the other.
        client.draw()
        client.finish(success=1.0)
        assert len(host.collect()) == (0 if first is PushedHost else 1)
    with second(curriculum, 3) as host:
        assert host.client(2).draw().env_index == 2


def test_a_closed_channel_refuses_both_sides_and_leaves_the_curriculum_as_it_was(
    backend: str,
) -> None:
    curriculum = make_staged()
    with rig(backend, curriculum, NUM_ENVS) as wired:
        play(wired, curriculum, 40)
        for client in wired.clients:
            client.draw()
        wired.clients[0].finish(success=1.0)
        observed = curriculum.num_observed
        wired.host.close()
        assert curriculum.num_observed == observed + 1
        counts, probs = wired.host.counts, curriculum.probs()
        version, stage = curriculum.plan.version, curriculum.current_stage
        wired.host.close()
        for client in wired.clients:
            with pytest.raises(ChannelError, match="closed"):
                client.draw()
        with pytest.raises(ChannelError, match="closed"):
            wired.clients[1].finish(success=1.0)
        for refused in (
            wired.host.collect,
            wired.host.snapshot,
            lambda: wired.host.restore(Snapshot({})),
        ):
            with pytest.raises(ChannelError, match="closed"):
                refused()
        # What was refused has left no trace.
        assert wired.host.counts == counts
        assert counts.in_flight == NUM_ENVS - 1
    assert (curriculum.plan.version, curriculum.current_stage) == (version, stage)
    np.testing.assert_array_equal(curriculum.probs(), probs)
    curriculum.go_to("easy")
    assert curriculum.plan.version == version + 1
    with rig("local", curriculum, 1) as wired:
        assert wired.clients[0].draw().plan_version == version + 1


def test_a_curriculum_goes_from_channel_to_channel_and_stays_the_same(
    make: Callable[[], Any],
) -> None:
    wandering, settled = make(), make()
    for kind in ("shared", "local", "pushed", "shared"):
        with rig(kind, wandering, NUM_ENVS) as wired:
            there = play(wired, wandering, 20)
        with rig("local", settled, NUM_ENVS) as wired:
            here = play(wired, settled, 20)
        assert there == here
        assert_same_snapshot(wandering.snapshot(), settled.snapshot())


# Tasks that cannot be built.


def test_too_many_unbuildable_tasks_raise_after_all_records_are_in(backend: str) -> None:
    curriculum = numbered(10_000)
    with rig(backend, curriculum, NUM_ENVS, max_failed_share=0.25) as wired:
        for _ in range(4):
            for client in wired.clients:
                client.draw()
                client.finish(success=1.0)
            wired.host.collect()
        for client in wired.clients:
            client.draw()
            client.fail("no such level")
            client.draw()
            client.fail("no such level")
            client.draw()
            client.finish(success=0.0)
        with pytest.raises(BuildError, match="8 of 28 draws could not be built"):
            wired.host.collect()
        assert curriculum.num_observed == 5 * NUM_ENVS
        assert wired.host.counts.failed == len(curriculum.quarantined) == 2 * NUM_ENVS
        assert wired.host.counts.in_flight == 0
        wired.clients[0].draw()
        wired.clients[0].finish(success=1.0)
        assert len(wired.host.collect()) == 1


def test_the_last_task_of_a_stage_that_cannot_be_built_is_an_error_that_loses_nothing(
    backend: str,
) -> None:
    curriculum = make_staged()
    with rig(backend, curriculum, NUM_ENVS) as wired:
        failed = set()
        for number in range(40):
            client = wired.clients[number % NUM_ENVS]
            draw = client.draw()
            if draw.slot in failed:
                client.skip()
                continue
            client.fail(f"cannot build {draw.slot}")
            failed.add(draw.slot)
        assert failed == {0, 1, 2, 3}
        with pytest.raises(BuildError, match="no task of stage 'easy' is left"):
            wired.host.collect()
        assert sorted(entry.slot for entry in curriculum.quarantined) == [0, 1, 2, 3]
        assert [entry.reason for entry in curriculum.quarantined] == [
            f"cannot build {entry.slot}" for entry in curriculum.quarantined
        ]
        assert (wired.host.counts.failed, wired.host.counts.in_flight) == (4, 0)
