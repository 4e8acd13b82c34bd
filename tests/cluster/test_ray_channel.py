"""The same over a real Ray cluster: several nodes, real kills."""

import os
import signal
from collections import Counter
from typing import Any

import pytest

from cluster.nodes import make_staged
from cluster.players import Player
from cluster.ray_cluster import RayCluster
from stepladder.cluster import RayChannel, Reach
from stepladder.cluster.board import PREFIX, folder_of_boards
from stepladder.errors import BuildError, ChannelError, ConfigError, HostGoneError
from stepladder.sync import LocalHost
from stepladder.tasks import Task

pytestmark = [pytest.mark.ray, pytest.mark.timeout(120)]


def player_on(ray: Any, node: str, reach: Reach, num_envs: int = 4) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    place = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(Player).options(num_cpus=0, scheduling_strategy=place).remote(reach, num_envs)


def observed(channel: RayChannel) -> Counter[int]:
    """Episodes by slot, as far as the host has observed them."""

    def samples(service: Any) -> list[int]:
        return service.meter.slots["num_samples"].astype(int).tolist()

    import ray

    counts = ray.get(channel._host.__ray_call__.remote(samples))
    return Counter({slot: count for slot, count in enumerate(counts) if count})


def pid_of(actor: Any) -> int:
    import ray

    return ray.get(actor.__ray_call__.remote(lambda _: os.getpid()))


def test_kills_of_everything_lose_nothing_and_count_nothing_twice(ray_cluster: RayCluster) -> None:
    ray = ray_cluster.ray
    with RayChannel(make_staged, envs_per_node=8) as channel:
        nodes = sorted(channel._agents)
        players = [player_on(ray, node, channel.reach) for node in nodes]

        def are_in_the_last_stage() -> bool:
            # A plan takes its time to all machines: how many episodes this needs is not fixed.
            ray.get([player.play.remote(50) for player in players])
            channel.collect()
            return ray.get(players[1].stages.remote()) == ["c"] * 4

        ray_cluster.wait_until(are_in_the_last_stage, "the last stage on all machines")

        # The host, while both play on: back from its last snapshot.
        playing = [player.play.remote(4_000) for player in players]
        os.kill(pid_of(channel._host), signal.SIGKILL)
        ray_cluster.wait_until(lambda: channel.about()["restarts"] == 1, "the host's second life")
        # The agents, one after the other.
        for node in nodes:
            os.kill(pid_of(channel._agents[node]), signal.SIGKILL)
        ray.get(playing, timeout=90)

        # An env runner in the middle of its episodes: these alone are aborted.
        victim = player_on(ray, nodes[1], channel.reach, 3)
        played = ray.get(victim.play.remote(10))
        os.kill(ray.get(victim.begin.remote()), signal.SIGKILL)
        ray_cluster.wait_until(lambda: channel.counts().aborted == 3, "three aborted episodes")

        # A machine that joins later, and another one that takes its place when it is gone.
        late = ray_cluster.add_node()
        ray_cluster.wait_until(lambda: channel.num_nodes == 3, "an agent on the new node")
        (name,) = set(channel._agents) - set(nodes)
        third = player_on(ray, name, channel.reach)
        last = ray.get(third.play.remote(25))
        channel.collect()
        ray.get(third.begin.remote())
        ray_cluster.wait_until(lambda: channel.counts().in_flight == 4, "episodes on the new node")
        ray_cluster.remove_node(late)
        # The memory of that machine would be gone with it; here it is that of the others too.
        for path in folder_of_boards().glob(f"{PREFIX}{channel.name}-{name[:16]}"):
            path.unlink()
        ray_cluster.wait_until(lambda: channel.num_nodes == 2, "the loss of the node")
        ray_cluster.wait_until(lambda: channel.counts().in_flight == 0, "its episodes' end")

        finished = sum(ray.get([player.play.remote(1) for player in players]), played + last)
        channel.collect()
        counts = channel.counts()
        assert observed(channel) == finished
        assert counts.finished == channel.about()["num_observed"] == finished.total()
        assert (counts.aborted, counts.in_flight) == (7, 0)
        assert channel.about()["nodes_lost"] == 1


def test_on_demand_all_nodes_play_what_one_machine_plays(ray_cluster: RayCluster) -> None:
    ray, curriculum = ray_cluster.ray, make_staged()
    with (
        RayChannel(make_staged, envs_per_node=4, is_synchronous=True) as channel,
        LocalHost(curriculum, 8) as host,
    ):
        first = {name: one["first_env"] for name, one in channel.about()["nodes"].items()}
        nodes = sorted(first, key=first.__getitem__)
        players = [player_on(ray, node, channel.reach) for node in nodes]
        finished: Counter[int] = Counter()
        for chance in (1.0,) * 6 + (0.0,):
            there = ray.get([player.play.remote(8, chance) for player in players])
            assert channel.collect() == curriculum.num_observed + 64
            for _ in range(8):
                for client in host.clients():
                    finished[client.draw().slot] += 1
                    client.finish(success=chance)
            host.collect()
            stages = ray.get([player.stages.remote() for player in players])
            assert stages == [[curriculum.current_stage] * 4] * 2
            assert sum(there, Counter()) == finished
        assert {one["plan_version"] for one in channel.boards()} == {curriculum.plan.version}


def test_bad_input_and_errors_of_the_curriculum_are_one_line(ray_cluster: RayCluster) -> None:
    with pytest.raises(ConfigError, match="make_curriculum must be a function"):
        RayChannel(make_staged())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="make_curriculum returned 3; expected a curriculum"):
        RayChannel(lambda: 3)  # type: ignore[arg-type, return-value]
    with pytest.raises(ConfigError, match="envs_per_node must be an integer"):
        RayChannel(make_staged, envs_per_node=0)
    assert not ray_cluster.ray.util.list_named_actors(all_namespaces=True)

    def make() -> Any:
        from stepladder.curricula import Uniform

        return Uniform([Task(f"task {index}") for index in range(40)])

    with RayChannel(make, envs_per_node=4, max_failed_share=0.1) as channel:
        client = channel.reach.client()
        for _ in range(25):
            client.draw()
            client.fail("no such level")
        with pytest.raises(BuildError, match="of 25 draws could not be built"):
            channel.collect()
        with pytest.raises(ChannelError, match="rows of this node are in use"):
            [channel.reach.client() for _ in range(4)]
        client.draw()
    with pytest.raises(ChannelError, match="was closed by its host"):
        client.finish(success=1.0)
    with pytest.raises(ChannelError, match="this channel is closed"):
        channel.counts()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stepladder.cluster.channel.JOIN_S", 0.1)
        with pytest.raises(HostGoneError, match="has no agent on this machine"):
            channel.reach.client()
