"""The learner's equations as plain as they can be written: what the compiled ones must equal.

Every task's skill is a number in a list, every play touches all of them, and nothing is scaled,
cached or compiled.
"""

import math

from stepladder.simulator import Epochwise, Prerequisite, TaskGraph


class PlainPrerequisite:
    """The equations of `Prerequisite`."""

    def __init__(self, graph: TaskGraph, dynamics: Prerequisite):
        self.graph, self.dynamics = graph, dynamics
        self.skills = [dynamics.start] * graph.num_tasks

    def play(self, node: int) -> None:
        old, dynamics = list(self.skills), self.dynamics

        def gain(task: int) -> float:
            gate = math.prod(old[parent] ** 2 for parent in self.graph.parents[task])
            return dynamics.eta * gate * (1.0 - old[task])

        self.skills[node] += gain(node)
        for parent in self.graph.parents[node]:
            self.skills[parent] += dynamics.gamma * gain(parent)
        self.skills = [skill * (1.0 - dynamics.lambda_forget) for skill in self.skills]


class PlainEpochwise:
    """The equations of `Epochwise`, for the plays of one epoch after another."""

    def __init__(self, graph: TaskGraph, dynamics: Epochwise, num_envs: int = 1):
        self.graph, self.dynamics = graph, dynamics
        self.plays_per_epoch = dynamics.samples_per_epoch * num_envs
        self.skills = [dynamics.start] * graph.num_tasks

    def complete_epoch(self, counts: list[float]) -> None:
        old, dynamics, children = list(self.skills), self.dynamics, self.graph.children()
        for node in range(self.graph.num_tasks):
            parents = self.graph.parents[node]
            stimulus = counts[node] + dynamics.gamma * sum(counts[parent] for parent in parents)
            gate = math.prod(old[child] for child in children[node])
            change = stimulus * gate * (1.0 - old[node]) - dynamics.lambda_forget * old[node]
            moved = old[node] + change * dynamics.dt / self.plays_per_epoch
            self.skills[node] = min(1.0, max(0.0, moved))
