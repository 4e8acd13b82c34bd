"""Host and clients that share no memory: the plan travels, and every env says it has it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stepladder.curricula import Uniform
from stepladder.errors import AgreementError, ChannelError
from stepladder.plans.plan import header_record
from stepladder.plans.record import Draw
from stepladder.sync import EpisodeCounts, PushedHost
from stepladder.sync.mailbox import CAPACITY
from stepladder.sync.pushed import require_agreement
from sync.rig import calling, make_crowded, make_staged, numbered, through_pickle


class Line:
    """A way to call the envs that can be cut, and that counts what goes over it."""

    def __init__(self, host: PushedHost):
        self.clients = [through_pickle(client) for client in host.clients()]
        self._call = calling(self.clients)
        self.calls: list[str] = []
        self.spoil: Callable[[str, list[Any]], list[Any]] = lambda method, answers: answers
        host.call = self.call

    def call(self, method: str, *args: Any) -> list[Any]:
        self.calls.append(method)
        return self.spoil(method, self._call(method, *args))


def finish_all(line: Line, success: float = 1.0) -> list[Draw]:
    draws = [client.draw() for client in line.clients]
    for client in line.clients:
        client.finish(success=success)
    return draws


# Agreement.


def test_an_env_that_answers_with_another_version_is_an_error() -> None:
    curriculum = make_staged()
    with PushedHost(curriculum, 3) as host:
        line = Line(host)
        curriculum.go_to("hard")
        line.spoil = lambda method, answers: [answers[0], answers[1] - 1, *answers[2:]]
        message = r"env 1 has plan version 1 and the host has 2 \(1 of 3 envs disagree\)"
        with pytest.raises(AgreementError, match=message):
            host.collect(ended=False)
        # It is tried again, for nobody has agreed yet.
        line.spoil = lambda method, answers: answers
        host.collect(ended=False)
        assert {client.plan_version() for client in line.clients} == {curriculum.plan.version}
        assert line.calls == ["push", "push"]


@pytest.mark.parametrize("answers", [[7, 7], [7]])
def test_agreement_is_one_version_for_all(answers: list[int]) -> None:
    require_agreement(7, answers)
    with pytest.raises(AgreementError, match="env 0 has plan version 7 and the host has 8"):
        require_agreement(8, answers)


@pytest.mark.parametrize("method", ["push", "pull"])
@pytest.mark.parametrize("change", [lambda answers: answers[:-1], lambda a: [*a, a[0]]])
def test_an_answer_too_few_or_too_many_is_an_error_that_loses_nothing(
    method: str, change: Callable[[list[Any]], list[Any]]
) -> None:
    curriculum = make_staged()
    with PushedHost(curriculum, 3) as host:
        line = Line(host)
        finish_all(line)
        line.spoil = lambda called, answers: change(answers) if called == method else answers
        curriculum.go_to("medium")
        with pytest.raises(AgreementError, match="envs and this channel has 3"):
            host.collect()
        line.spoil = lambda called, answers: answers
        host.collect()
        assert curriculum.num_observed == 3
        assert host.counts == EpisodeCounts(3, 3, 0, 0, 0)


def test_a_host_that_reaches_nobody_cannot_push() -> None:
    with PushedHost(numbered(5), 1) as host:
        with pytest.raises(AgreementError, match="cannot reach its envs yet"):
            host.push()
        assert len(host.collect()) == 0


# What goes over the line, and what does not.


def test_the_plan_travels_only_when_it_has_changed() -> None:
    curriculum = numbered(1000)
    with PushedHost(curriculum, 2) as host:
        line = Line(host)
        host.push()
        line.calls.clear()
        for _ in range(3):
            finish_all(line)
            assert len(host.collect()) == 2
        assert line.calls == ["pull"] * 3
        host.collect(ended=False)
        assert line.calls == ["pull"] * 3
        curriculum.quarantine(0, 0, "no such level")
        host.collect(ended=False)
        assert line.calls == [*["pull"] * 3, "push"]


def test_an_env_draws_from_the_last_plan_it_was_sent() -> None:
    curriculum = make_staged()
    with PushedHost(curriculum, 2) as host:
        line = Line(host)
        curriculum.go_to("hard")
        assert {client.current_stage() for client in line.clients} == {"easy"}
        host.collect(ended=False)
        assert {client.current_stage() for client in line.clients} == {"hard"}
        assert all(client.draw().slot >= 4 for client in line.clients)


def test_a_collection_that_finds_nothing_does_not_make_the_next_draw_look_newer() -> None:
    with PushedHost(numbered(100), 2) as host:
        line = Line(host)
        finish_all(line)
        host.collect()
        ticks = [client.draw().tick for client in line.clients]
        for _ in range(3):
            assert len(host.collect()) == 0
            ticks += [client.draw().tick for client in line.clients]
        assert set(ticks) == {host.curriculum.plan.tick} == {1}
        for client in line.clients:
            client.finish(success=1.0)
            client.draw()
            client.finish(success=1.0)
        host.collect()
        assert host.staleness.draws_by_lag[:3] == (4, 2, 0)


# Trouble on the line.


@pytest.mark.parametrize("method", ["pull", "push"])
@pytest.mark.parametrize("is_delivered", [True, False])
def test_a_lost_answer_neither_loses_nor_doubles_a_record(method: str, is_delivered: bool) -> None:
    curriculum = make_crowded()
    with PushedHost(curriculum, 2, max_failed_share=1.0) as host:
        line = Line(host)
        host.push()
        observed: list[int] = []

        def cut(called: str, *args: Any) -> list[Any]:
            if called == method:
                if is_delivered:
                    line.call(called, *args)
                raise ConnectionError("the line is down")
            return line.call(called, *args)

        for number in range(40):
            drawn = finish_all(line)
            curriculum.replace(number % 8)
            host.call = cut if number % 2 else line.call
            try:
                records = host.collect()
            except ConnectionError:
                host.call = line.call
                # Nothing has happened if the question was lost; all has, if only the plan was.
                records = host.collect()
            observed += records["episode_index"].tolist()
            assert curriculum.num_observed == 2 * (number + 1)
            assert host.counts == EpisodeCounts(2 * (number + 1), 2 * (number + 1), 0, 0, 0)
            versions = {client.plan_version() for client in line.clients}
            assert versions == {curriculum.plan.version}
            assert [draw.episode_index for draw in drawn] == [number, number]
        assert len(observed) == (80 if method == "pull" else 40)


def test_records_stay_with_the_client_until_they_are_acknowledged() -> None:
    with PushedHost(numbered(100), 1) as host:
        line = Line(host)
        (client,) = line.clients
        for _ in range(3 * CAPACITY):
            client.draw()
            client.finish(success=1.0)
            if client.draw().episode_index % 10 == 9:
                # Asked twice before it is acknowledged, it answers the same twice.
                taken = [host.episodes_of(0)]
                first, second = client.pull(taken, 0).copy(), client.pull(taken, 0).copy()
                np.testing.assert_array_equal(first, second)
                host.collect()
        host.collect()
        assert host.counts.finished == host.curriculum.num_observed == 3 * CAPACITY


def test_a_full_mailbox_is_an_error_because_nobody_can_empty_it() -> None:
    with PushedHost(numbered(100), 1) as host:
        line = Line(host)
        (client,) = line.clients
        for _ in range(CAPACITY):
            client.draw()
            client.finish(success=1.0)
        client.draw()
        with pytest.raises(ChannelError, match="waiting would never end"):
            client.finish(success=1.0)
        with pytest.raises(ChannelError, match="waiting would never end"):
            client.fail("no such level")
        assert len(host.collect()) == CAPACITY
        client.finish(success=1.0)
        assert host.collect()["episode_index"].tolist() == [CAPACITY]


# Restoring.


def test_a_restore_reaches_every_env_at_once() -> None:
    donor = make_staged()
    with PushedHost(donor, 2) as host:
        line = Line(host)
        for _ in range(10):
            finish_all(line)
            host.collect()
        playing = [client.draw() for client in line.clients]
        snapshot = host.snapshot()
    curriculum = make_staged()
    with PushedHost(curriculum, 2) as host:
        line = Line(host)
        finish_all(line, success=0.0)
        host.collect()
        line.calls.clear()
        host.restore(snapshot)
        assert line.calls == ["push"]
        assert {client.plan_version() for client in line.clients} == {donor.plan.version}
        assert {client.current_stage() for client in line.clients} == {donor.current_stage}
        assert [client.draw() for client in line.clients] == playing
        assert {int(header_record(client._own_block)["tick"]) for client in line.clients} == {
            donor.plan.tick
        }


def test_clients_made_after_a_restore_know_of_it() -> None:
    donor = make_staged()
    with PushedHost(donor, 2) as host:
        line = Line(host)
        finish_all(line)
        host.collect()
        playing = [client.draw() for client in line.clients]
        snapshot = host.snapshot()
    curriculum = make_staged()
    with PushedHost(curriculum, 2) as host:
        host.restore(snapshot)
        line = Line(host)
        assert [client.draw() for client in line.clients] == playing
        for client in line.clients:
            client.finish(success=1.0)
        assert len(host.collect()) == 2
        assert host.counts == EpisodeCounts(4, 4, 0, 0, 0)


def test_a_plan_restored_while_nobody_could_be_reached_is_sent_later() -> None:
    curriculum = make_staged()
    with PushedHost(curriculum, 1) as host:
        old = host.snapshot()
        line = Line(host)
        curriculum.go_to("medium")
        host.collect(ended=False)
        host.call = None
        host.restore(old)
        # The same version as was last sent, with another content.
        curriculum.go_to("hard")
        host.call = line.call
        host.collect(ended=False)
        assert line.clients[0].current_stage() == "hard"


def test_a_push_for_a_restore_does_not_carry_rings_that_are_empty() -> None:
    num_envs = 32
    curriculum = Uniform(numbered(10).pool.source)
    with PushedHost(curriculum, num_envs) as host:
        line = Line(host)
        finish_all(line)
        sizes: list[int] = []

        def weigh(method: str, *args: Any) -> list[Any]:
            if method == "push" and args[2] is not None:
                sizes.append(args[2].nbytes)
            return line.call(method, *args)

        host.call = weigh
        host.restore(host.snapshot())
    # Once for the restore and once for the end; every env gets the mailboxes of all.
    assert len(sizes) == 2
    assert max(sizes) <= num_envs * 8 * 32


def test_closing_lets_go_even_if_nobody_can_be_reached_any_more() -> None:
    def cut(method: str, *args: Any) -> list[Any]:
        raise ConnectionError("the line is down")

    curriculum = numbered(5)
    host = PushedHost(curriculum, 1, cut)
    with pytest.raises(ConnectionError, match="the line is down"):
        host.close()
    assert host.is_closed
    with pytest.raises(ChannelError, match="closed"):
        host.client(0).draw()
    PushedHost(curriculum, 1).close()


def test_the_dead_cannot_be_found_from_afar() -> None:
    with PushedHost(numbered(5), 2) as host:
        line = Line(host)
        line.clients[0].draw()
        host.collect()
        assert host.find_dead() == []
        # The vector env knows; then they can be discarded as everywhere.
        assert host.discard_dead([0]) == 1
        assert host.counts == EpisodeCounts(1, 0, 1, 0, 0)
        host.call = None
