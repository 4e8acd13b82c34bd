"""A second channel over the same curriculum goes on; it does not repeat the first one's draws."""

from stepladder.curricula import Uniform
from stepladder.sync import LocalHost, SharedHost
from stepladder.tasks import ListSource


def play(host, episodes):
    client, slots = host.client(0), []
    for _ in range(episodes):
        slots.append(client.draw().slot)
        client.finish(success=1.0)
        host.collect()
    return slots


def test_a_new_channel_continues_the_random_numbers_of_the_old_one():
    whole, parts = (Uniform(ListSource.numbered(1000), seed=4) for _ in range(2))
    with LocalHost(whole, 1) as host:
        expected = play(host, 20)
    with LocalHost(parts, 1) as host:
        first = play(host, 8)
    with SharedHost(parts, 1) as host:
        second = play(host, 12)
    assert first + second == expected


def test_a_curriculum_restored_elsewhere_does_not_repeat_draws_either():
    whole, saved, restored = (Uniform(ListSource.numbered(1000), seed=4) for _ in range(3))
    with LocalHost(whole, 1) as host:
        expected = play(host, 20)
    with LocalHost(saved, 1) as host:
        play(host, 8)
    restored.restore(saved.snapshot())
    with LocalHost(restored, 1) as host:
        assert play(host, 12) == expected[8:]
