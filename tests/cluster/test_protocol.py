"""Between node agents and a host: nothing lost, nothing twice, whatever is killed, without Ray."""

import itertools
import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.nodes import KilledError, Nodes, make_staged
from stepladder.cluster import board as boards
from stepladder.cluster.board import Board
from stepladder.cluster.node import NodeSide
from stepladder.curricula import Uniform
from stepladder.errors import BuildError, ChannelError, HostGoneError, SnapshotError
from stepladder.sync import LocalHost
from stepladder.tasks import ListSource


def test_every_finished_episode_is_observed_once_whatever_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    with Nodes(tmp_path, snapshot_interval_s=1e9) as rig:
        rig.lease_all()
        kinds = itertools.cycle(["host", "agent", "answer", "half moved", "snapshot", "none"])
        for _ in range(120):
            rig.play(rng, 0.6)
            kind, victim = next(kinds), int(rng.integers(2))
            if kind == "half moved":
                # Killed when the records are in the outbox and no mailbox has been told.
                with monkeypatch.context() as patch:
                    patch.setattr(Board, "_release", _killed)
                    with pytest.raises(KilledError):
                        rig.nodes[victim].pump()
                rig.kill_agent(victim)
            elif kind == "answer":
                rig.lost_answers = 1
                with pytest.raises(KilledError):
                    rig.nodes[victim].pump()
                rig.kill_agent(victim)
            elif kind == "host":
                rig.kill_host()
            elif kind == "agent":
                rig.kill_agent(victim)
            elif kind == "snapshot":
                rig.service._save()
            if rng.random() < 0.5:
                rig.nodes[1 - victim].pump()
        restarts = rig.service.numbers.restarts
        rig.settle()
        assert restarts == 20
        assert rig.observed() == rig.finished
        counts = rig.service.counts()
        assert counts.started == counts.finished == rig.finished.total()
        assert rig.service.curriculum.num_observed == rig.finished.total()


def _killed(*_: Any) -> None:
    raise KilledError


def test_an_answer_that_is_lost_makes_repeats_and_these_are_recognised(tmp_path: Path) -> None:
    with Nodes(tmp_path, num_nodes=1, snapshot_interval_s=1e9) as rig:
        rig.lease_all()
        rig.play(np.random.default_rng(0))
        rig.lost_answers = 1
        with pytest.raises(KilledError):
            rig.nodes[0].pump()
        rig.settle()
        assert rig.service.numbers.repeats == 3
        assert rig.observed() == rig.finished


def test_what_is_acknowledged_is_in_the_snapshot_of_the_host(tmp_path: Path) -> None:
    with Nodes(tmp_path, num_nodes=1, snapshot_interval_s=1e9) as rig:
        rig.lease_all()
        head = rig.nodes[0].board.head
        rig.play(np.random.default_rng(0))
        rig.settle()
        assert rig.service.curriculum.num_observed == 3
        assert (head["filled"], head["freed"]) == (3, 0), "freed before a snapshot was made"
        rig.service._save()
        rig.nodes[0].pump()
        assert head["freed"] == 3
        rig.kill_host()
        assert rig.service.curriculum.num_observed == 3


def test_collected_on_demand_a_cluster_plays_what_one_machine_plays(tmp_path: Path) -> None:
    curriculum = make_staged()
    with (
        LocalHost(curriculum, 6) as host,
        Nodes(tmp_path, num_nodes=2, num_rows=3, is_synchronous=True) as rig,
    ):
        here, there = host.clients(), rig.lease_all()
        rng = np.random.default_rng(1)
        for step in range(60):
            for one, other in zip(here, there, strict=True):
                draw = one.draw()
                assert other.draw() == draw
                success = float(rng.random() < 0.8)
                one.finish(success=success)
                other.finish(success=success)
            host.collect()
            # Whichever comes first, and in however many batches.
            for node in rig.nodes[:: 1 if step % 2 else -1]:
                node.pump()
            rig.service.collect()
            for node in rig.nodes:
                node.refresh(rig.service.plan_since)
        assert curriculum.current_stage == "c"
        assert rig.service.host.staleness.largest == 0
        np.testing.assert_array_equal(rig.service.curriculum.probs(), curriculum.probs())


def test_on_demand_nothing_is_observed_before_and_a_killed_host_loses_nothing(
    tmp_path: Path,
) -> None:
    with Nodes(tmp_path, is_synchronous=True) as rig:
        rig.lease_all()
        rig.play(np.random.default_rng(0))
        for node in rig.nodes:
            node.pump()
        assert rig.service.curriculum.num_observed == 0
        rig.service._save()
        rig.kill_host()
        rig.settle()
        assert rig.observed() == rig.finished


def test_a_host_that_never_had_time_for_a_snapshot_makes_one_when_a_node_is_full(
    tmp_path: Path,
) -> None:
    with Nodes(tmp_path, num_nodes=1, snapshot_interval_s=1e9) as rig:
        client = rig.lease_all()[0]
        for number in range(70_000):
            client.draw()
            client.finish(success=1.0)
            if number % 64 == 63:
                rig.nodes[0].pump()
        rig.settle()
        assert rig.service.curriculum.num_observed == 70_000
        assert rig.nodes[0].board.head["freed"] > 0


def test_an_env_whose_agent_and_host_are_gone_says_so_instead_of_waiting_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Nodes(tmp_path, num_nodes=1) as rig:
        client = rig.lease_all()[0]
        for _ in range(64):
            client.draw()
            client.finish(success=1.0)
        client.draw()
        monkeypatch.setattr(boards, "PATIENCE_S", 0.2)
        with pytest.raises(HostGoneError, match=r"the host of env 0 has not answered for \d+ s"):
            client.finish(success=1.0)
        # As soon as somebody is there again, nothing has been lost.
        rig.nodes[0].pump()
        client.finish(success=1.0)
        rig.settle()
        assert rig.service.curriculum.num_observed == 65


def test_a_node_that_joins_later_has_the_plan_of_the_moment_and_envs_of_its_own(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    with Nodes(tmp_path, num_nodes=1) as rig:
        rig.lease_all()
        for _ in range(40):
            rig.play(rng)
            rig.nodes[0].pump()
        node = rig.add_node()
        client = node.lease(os.getpid())
        assert client.env_index == 3
        assert client.plan_version() == rig.clients[0].plan_version() > 1
        rig.clients.append(client)
        rig.kill_host()
        rig.play(rng)
        rig.settle()
        assert rig.observed() == rig.finished
        assert rig.service.curriculum._state.method["num_envs"].item() == 4


def test_plans_travel_as_changes_and_arrive_whole(tmp_path: Path) -> None:
    def make() -> Uniform:
        return Uniform(ListSource.numbered(2000), seed=1)

    with Nodes(tmp_path, make=make, snapshot_interval_s=1e9) as rig:
        sizes = []
        rig.lease_all()
        for slot in range(40):
            rig.service.curriculum.quarantine(slot, 0, "of the test")
            rig.service.log.note(rig.service.curriculum.plan.block)
            update = rig.service.log.since(rig.nodes[0]._serial)
            assert update is not None
            sizes.append(len(update.places))
            rig.nodes[0].pump()
            if slot % 7 == 0:
                rig.nodes[1].pump()
        rig.settle()
        block = rig.service.curriculum.plan.block
        assert max(sizes) < len(block) / 20
        for node in rig.nodes:
            np.testing.assert_array_equal(node.board.plan, block)


def test_the_row_of_a_process_that_died_is_given_on_and_its_episode_counts_as_aborted(
    tmp_path: Path,
) -> None:
    with Nodes(tmp_path, num_nodes=1) as rig:
        node = rig.nodes[0]
        client = node.lease(os.getpid(), 2)
        assert client.env_index == 2
        client.draw()
        process = multiprocessing.get_context("fork").Process(target=int)
        process.start()
        process.join()
        node.board.mails.heads["pid"][2] = process.pid
        again = node.lease(os.getpid(), 2)
        assert again.env_index == 2
        assert again.draw().episode_index == 1
        again.finish(success=1.0)
        rig.settle()
        counts = rig.service.counts()
        assert (counts.finished, counts.aborted, counts.in_flight) == (1, 1, 0)
        again.disconnect()
        with pytest.raises(ChannelError, match="has given its row back"):
            again.draw()
        assert [node.lease(os.getpid()).env_index for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ChannelError, match="all 3 rows of this node are in use"):
            node.lease(os.getpid())


def test_the_episodes_of_a_machine_that_is_gone_count_as_aborted(tmp_path: Path) -> None:
    with Nodes(tmp_path) as rig:
        rig.lease_all()
        rig.play(np.random.default_rng(0))
        for client in rig.clients:
            client.draw()
        rig.settle()
        assert rig.service.lose("node-1") == 3
        assert rig.service.lose("node-1") == 0
        counts = rig.service.counts()
        assert (counts.finished, counts.aborted, counts.in_flight) == (6, 3, 3)
        assert rig.service.curriculum._state.method["num_envs"].item() == 3


def test_a_task_that_cannot_be_built_is_quarantined_with_its_reason(tmp_path: Path) -> None:
    def make() -> Uniform:
        return Uniform(ListSource.numbered(20), seed=1)

    with Nodes(tmp_path, make=make, max_failed_share=0.2) as rig:
        first, *_, last = rig.lease_all()
        slot = last.draw().slot
        last.fail("no such level")
        rig.settle()
        (entry,) = rig.service.curriculum.quarantined
        assert (entry.slot, entry.reason) == (slot, "no such level")
        for _ in range(19):
            first.draw()
            first.finish(success=0.0)
        rig.settle()
        while first.draw().slot == slot:
            first.skip()
        for _ in range(5):
            first.fail("nor this one")
            first.draw()
        with pytest.raises(BuildError, match="draws could not be built"):
            rig.settle()


def test_a_curriculum_goes_on_in_a_channel_with_other_machines(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with Nodes(tmp_path / "one") as rig:
        rig.lease_all()
        for _ in range(30):
            rig.play(rng)
            rig.settle()
        saved = rig.service.saved_curriculum()
        stage, metrics = rig.service.curriculum.current_stage, rig.service.metrics()
    with Nodes(tmp_path / "two", num_nodes=1, num_rows=2) as other:
        other.lease_all()
        other.service.restore_curriculum(saved)
        other.settle()
        assert other.service.metrics() == metrics
        client = other.clients[0]
        assert (client.current_stage(), client.draw().episode_index) == (stage, 30)
        client.finish(success=1.0)
        other.settle()
        assert other.service.curriculum.num_observed == 181
        with pytest.raises(SnapshotError, match="expected the curriculum of a channel"):
            other.service.restore_curriculum(other.service.snapshot())


def test_a_board_that_nobody_has_used_for_long_is_removed_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Nodes(tmp_path, num_nodes=3) as rig:
        process = multiprocessing.get_context("fork").Process(target=int)
        process.start()
        process.join()
        for node in rig.nodes:
            node.board.head["agent_pid"] = process.pid
            os.utime(node.board.path, (0, 0))
        rig.nodes[0]._last_reap = 0.0
        rig.nodes[0].pump()
        rig.nodes[1].board.head["agent_pid"] = os.getpid()
        boards.remove_forgotten()
        assert [node.board.path.exists() for node in rig.nodes] == [True, True, False]


def test_a_record_that_came_before_its_predecessors_is_refused(tmp_path: Path) -> None:
    with Nodes(tmp_path, num_nodes=1) as rig:
        client = rig.lease_all()[0]
        client.draw()
        client.finish(success=1.0)
        batch = _batch_of(rig.nodes[0])
        with pytest.raises(ChannelError, match="record 1 of env 0 came before its predecessors"):
            rig.service.host.receive(batch.records, batch.numbers + 1, {})
        batch.records["env_index"] = 9
        with pytest.raises(ChannelError, match="a record of env 9; this channel has envs 0 to 2"):
            rig.service.host.receive(batch.records, batch.numbers, {})


def _batch_of(node: NodeSide) -> Any:
    node.board.move()
    return node._batch(False)[0]
