"""Host and clients in one process."""

import copy
import pickle
from multiprocessing.connection import Connection

import pytest

from stepladder.errors import WrongProcessError
from stepladder.sync import LocalHost
from stepladder.sync.mailbox import CAPACITY
from sync.rig import forked, numbered, receive

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_local_client_refuses_to_travel_and_says_what_to_use(way: object) -> None:
    with LocalHost(numbered(5), 1) as host, pytest.raises(TypeError, match="Use SharedHost"):
        way(host.client(0))  # type: ignore[operator]


def test_two_clients_of_one_env_share_its_mailbox() -> None:
    with LocalHost(numbered(5), 2) as host:
        first, second = host.client(1), host.client(1)
        first.draw()
        second.finish(success=1.0)
        assert second.draw().episode_index == 1
        assert host.collect()["env_index"].tolist() == [1]


def test_nothing_is_observed_before_the_host_collects() -> None:
    curriculum = numbered(5)
    with LocalHost(curriculum, 1) as host:
        client = host.client(0)
        client.draw()
        client.finish(success=1.0)
        assert curriculum.num_observed == 0
        host.collect()
        assert curriculum.num_observed == 1


def try_to_play(pipe: Connection, host: LocalHost, clients: list) -> None:
    outcomes = []
    for act in (
        clients[0].draw,
        clients[1].draw,
        host.collect,
        host.snapshot,
        lambda: host.restore(host.curriculum.snapshot()),
    ):
        try:
            act()
            outcomes.append("done")
        except WrongProcessError as error:
            outcomes.append(str(error))
    host.close()
    pipe.send(outcomes)


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_what_a_fork_leaves_of_a_local_channel_refuses_instead_of_losing_records() -> None:
    with LocalHost(numbered(5), 2) as host:
        clients = host.clients()
        clients[0].draw()
        with forked(try_to_play, host, clients) as (_, pipe):
            outcomes = receive(pipe)
        assert "done" not in outcomes
        assert "cannot leave its process" in outcomes[0]
        # Here everything goes on.
        clients[0].finish(success=1.0)
        clients[1].draw()
        assert len(host.collect()) == 1
        assert host.counts.in_flight == 1


def fill_up(pipe: Connection, host: LocalHost) -> None:
    try:
        client = host.client(0)
        for _ in range(CAPACITY + 1):
            client.draw()
            client.finish(success=1.0)
        host.collect()
    except WrongProcessError:
        pipe.send("refused")


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_local_client_made_in_a_fork_does_not_wait_for_ever() -> None:
    with LocalHost(numbered(5), 1) as host, forked(fill_up, host) as (_, pipe):
        assert receive(pipe) == "refused"
