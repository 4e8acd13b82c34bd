"""What tests run on the nodes of a cluster; its processes import it by name."""

import os
from collections import Counter

from stepladder.cluster import Reach


class Player:
    """An env runner: plays some envs until it has played enough, or is told to die."""

    def __init__(self, reach: Reach, num_envs: int):
        self.clients = [reach.client() for _ in range(num_envs)]
        self.finished: Counter[int] = Counter()

    def play(self, num_episodes: int, chance: float = 1.0) -> Counter[int]:
        for _ in range(num_episodes):
            for client in self.clients:
                draw = client.draw()
                client.finish(success=chance)
                self.finished[draw.slot] += 1
        return self.finished

    def begin(self) -> int:
        """Begin an episode in every env; return this process's id."""
        for client in self.clients:
            client.draw()
        return os.getpid()

    def stages(self) -> list[str | None]:
        return [client.current_stage() for client in self.clients]

    def close(self) -> None:
        for client in self.clients:
            client.disconnect()
