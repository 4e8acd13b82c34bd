"""Env steps/s and updates/s with one flat optimiser, with torch's own, and with `torch.compile`.

Each arm is the same training of hockey, at the sizes of `training`, with its updates computed in
another way. The arms of a cell are built first and then run in turns, with one torch thread. A
figure is a median over turns, per second of CPU time (`time.process_time`), which other processes
on the machine disturb least; the same per second of wall time stands beside it. The first turns of
an arm, reported apart, include compiling.

Arms: `product` is the agent as it is: autograd, and the agents' own `Adam`, which joins the
parameters. `plain` is autograd with `torch.optim.Adam(fused=True)` over separate parameters and
`clip_grad_norm_`. `compile` is `product` with the losses compiled.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from harness import Report, parser
from torch import nn
from training_contests import (
    DQN_4,
    DQN_DEFAULT,
    PPO_64,
    PPO_1024,
    PPO_DEFAULT,
    SAC_4,
    SAC_16,
    Contest,
    Ours,
)

from stepladder.agents.arithmetic import (
    clipped_policy_loss,
    double_q_targets,
    soft_targets,
    standardised,
)
from stepladder.agents.dddqn.dddqn import DDDQN
from stepladder.agents.networks.optimiser import Adam
from stepladder.agents.ppo.ppo import PPO
from stepladder.agents.replay.memory import Sample
from stepladder.agents.sac.sac import SAC

CONTESTS = {
    "ppo-64": PPO_64, "ppo-1024": PPO_1024, "dddqn": DQN_4, "sac-16": SAC_16, "sac-4": SAC_4,
    "ppo-default": PPO_DEFAULT, "dddqn-default": DQN_DEFAULT,
}  # fmt: skip
UPDATES_PER_TURN = 16
Tensors = tuple[torch.Tensor, ...]
Figures = dict[str, torch.Tensor]
Losses = Callable[..., Tensors]
"""Returns the loss, and what else an update needs."""

Wrap = Callable[[Losses], Losses]


class PlainAdam:
    """Torch's Adam over separate parameters, with the checks that agents need."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        learning_rate: float,
        *,
        eps: float = 1e-8,
        max_grad_norm: float | None = None,
    ):
        self.parameters = list(parameters)
        for parameter in self.parameters:
            parameter.data, parameter.grad = parameter.data.clone(), None
        self.learning_rate, self.max_grad_norm = learning_rate, max_grad_norm or math.inf
        self._adam = torch.optim.Adam(self.parameters, lr=learning_rate, eps=eps, fused=True)
        self.num_steps, self.has_stopped = 0, False

    def minimise(self, loss: torch.Tensor) -> None:
        """Do one step along the gradient of a loss."""
        gradients = torch.autograd.grad(loss, self.parameters)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        length = nn.utils.clip_grad_norm_(self.parameters, self.max_grad_norm)
        self.has_stopped = self.has_stopped or not math.isfinite(length.item())
        if not self.has_stopped:
            self._adam.step()
            self.num_steps += 1


ARMS: dict[str, tuple[type[Any], Wrap] | None] = {
    "product": None,
    "plain": (PlainAdam, lambda losses: losses),
    "compile": (Adam, torch.compile),
}


# Updates by autograd, put in the place of the agents' own.


def rewrite_ppo(agent: Any, make: type[Any], wrap: Wrap) -> None:
    """Let autograd compute the updates of a PPO with continuous actions and no memory."""
    policy, config, learner = agent._policy, agent.config, agent._learner
    agent._adam = learner._adam = adam = make(
        policy.parameters(), config.learning_rate, eps=1e-5, max_grad_norm=config.max_grad_norm
    )

    def losses(features: Any, actions: Any, old: Any, advantages: Any, returns: Any) -> Tensors:
        means, values = policy(features)
        log_probs, entropy = policy.evaluate(means, actions)
        policy_loss, ratios = clipped_policy_loss(
            log_probs, old, standardised(advantages), config.clip
        )
        value_loss = F.mse_loss(values, returns)
        loss = policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
        clipped_share = ((ratios.detach() - 1.0).abs() > config.clip).float().mean()
        return loss, policy_loss.detach(), value_loss.detach(), entropy.detach(), clipped_share

    computed = wrap(losses)

    def update(places: torch.Tensor) -> Figures:
        batch = learner.minibatch(places)
        features = policy.encoder.inputs(batch.seen)
        loss, *figures = computed(
            features, batch.actions, batch.log_probs, batch.advantages, batch.returns
        )
        adam.minimise(loss)
        return dict(zip(("policy", "value", "entropy", "clipped_share"), figures, strict=True))

    learner._updated = update


def rewrite_dddqn(agent: Any, make: type[Any], wrap: Wrap) -> None:
    """Let autograd compute the updates of a DDDQN with Huber's loss and no priorities."""
    network, config = agent._policy.network, agent.config
    agent._adam = adam = make(
        network.parameters(), config.learning_rate, max_grad_norm=config.max_grad_norm
    )

    def losses(sample: Sample) -> Tensors:
        with torch.no_grad():
            targets = double_q_targets(
                sample.rewards,
                sample.discounts,
                network.advantages(sample.next_seen),
                agent.target(sample.next_seen),
            )
        values = network(sample.seen).gather(1, sample.actions.long()).squeeze(1)
        errors = values.detach() - targets
        return F.smooth_l1_loss(values, targets), values.detach().mean(), errors.abs().mean()

    computed = wrap(losses)

    def follow(sample: Sample, counts: None) -> tuple[Figures, None]:
        loss, value, error = computed(sample)
        adam.minimise(loss)
        return {"q": loss.detach(), "value": value, "error": error}, counts

    agent._follow = follow


def rewrite_sac(agent: Any, make: type[Any], wrap: Wrap) -> None:
    """Let autograd compute the updates of a SAC."""
    config, actor, memory = agent.config, agent._policy.actor, agent.memory
    critic, target = agent.critic, agent.target
    agent._critic_adam = critic_adam = make(critic.parameters(), config.learning_rate)
    agent._actor_adam = actor_adam = make(actor.parameters(), config.learning_rate)
    temperature_adam = make([agent.log_temperature], config.learning_rate)

    def critic_losses(sample: Sample, noise: Any, temperature: Any) -> Tensors:
        with torch.no_grad():
            features = actor.encoder(sample.next_seen)
            actions, log_probs = actor.sample(features, noise)
            after = target(torch.cat([features, actions], dim=1))
            targets = soft_targets(sample.rewards, sample.discounts, after, log_probs, temperature)
        values = critic(torch.cat([actor.encoder(sample.seen), sample.actions], dim=1))
        return 0.5 * (values - targets).square().mean(1).sum(), values.detach().mean()

    def actor_losses(sample: Sample, noise: Any, temperature: Any) -> Tensors:
        features = actor.encoder(sample.seen)
        actions, log_probs = actor.sample(features, noise)
        values = critic(torch.cat([features, actions], dim=1)).amin(0)
        return (temperature * log_probs - values).mean(), -log_probs.detach().mean()

    judged, chosen = wrap(critic_losses), wrap(actor_losses)
    pairs = list(zip(target.parameters(), critic.parameters(), strict=True))

    def update() -> Figures:
        sample = memory.at(memory.draw(config.batch_size, agent.generator), agent.generator)
        temperature = agent.log_temperature.detach().exp()
        shape = (2, config.batch_size, agent._policy.num_dims)
        noise = torch.randn(shape, generator=agent.generator)
        critic_loss, value = judged(sample, noise[0], temperature)
        critic_adam.minimise(critic_loss)
        actor_loss, entropy = chosen(sample, noise[1], temperature)
        actor_adam.minimise(actor_loss)
        temperature_adam.minimise(agent.log_temperature * (entropy - agent._target_entropy))
        with torch.no_grad():
            if isinstance(critic_adam, Adam):
                agent._target_weights.lerp_(critic_adam.weights, config.tau)
            else:
                for old, new in pairs:
                    old.lerp_(new, config.tau)
        return {
            "critic": critic_loss.detach(),
            "actor": actor_loss.detach(),
            "temperature": temperature,
            "entropy": entropy,
            "value": value,
        }

    agent._do_update = update


REWRITE: dict[type[Any], Callable[[Any, type[Any], Wrap], None]] = {
    PPO: rewrite_ppo,
    DDDQN: rewrite_dddqn,
    SAC: rewrite_sac,
}


# Measuring.


def built(contest: Contest, arm: str, num_envs: int, num_steps: int) -> tuple[Ours, float]:
    """Return the training of an arm after two turns, and the seconds of wall time they took."""
    side = Ours(contest.config(num_envs, num_steps, "cpu"))
    agent, way = side.trainer.agent, ARMS[arm]
    if way is not None:
        REWRITE[type(agent)](agent, *way)
    # Wall time: torch.compile runs the compiler in processes of its own.
    began = time.perf_counter()
    for _ in range(2):
        side.train(num_steps)
    return side, time.perf_counter() - began


def training_of(side: Any, num_steps: int) -> Callable[[], int]:
    """Return a function that trains for a turn and returns its env steps."""

    def turn() -> int:
        before = side.counts()[0]
        side.train(num_steps)
        return side.counts()[0] - before

    return turn


def updating_of(side: Any) -> Callable[[], int]:
    """Return a function that does the updates of a turn, checked as in training; their number."""
    agent = side.trainer.agent
    if not isinstance(agent, PPO):

        def replayed() -> int:
            for _ in range(UPDATES_PER_TURN):
                agent._require_update(agent._do_update())
            return UPDATES_PER_TURN

        return replayed
    while not agent.rollout.is_full:
        learn, agent.learn = agent.learn, lambda: 0
        side.trainer.advance()
        agent.learn = learn
    learner: Any = agent._learner  # pyright: ignore[reportPrivateUsage]
    learner.estimate()
    batches = list(learner._rows())

    def learned() -> int:
        for places in batches:
            agent._require_update(learner._update(places))
        return len(batches)

    return learned


def rates_of(turns: dict[str, Callable[[], int]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return each arm's median rates: per second of CPU time and of wall time."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    for number in range(rounds + 1):
        for name, turn in turns.items():
            cpu, wall = time.process_time(), time.perf_counter()
            count = turn()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            if number:  # The first round is not measured.
                found[name].append((count / cpu, count / wall))
    return {
        name: (statistics.median(a for a, _ in both), statistics.median(b for _, b in both))
        for name, both in found.items()
    }


def measure(report: Report, contest: Contest, num_envs: int, given: argparse.Namespace) -> None:
    """Measure all arms of one contest with one number of envs."""
    num_steps = max(contest.quick_steps, num_envs)
    name = f"{contest.name}, {num_envs} env{'' if num_envs == 1 else 's'}"
    sides: dict[str, Ours] = {}
    for arm in given.arms:
        sides[arm], seconds = built(contest, arm, num_envs, num_steps)
        report.add(f"{name}, first turns, {arm}", seconds, "s")
    measurements: dict[str, tuple[str, Callable[[Any], Callable[[], int]]]] = {
        "end to end": ("steps/s", lambda side: training_of(side, num_steps)),
        "update only": ("updates/s", updating_of),
    }
    for what, (unit, turn_of) in measurements.items():
        turns = {arm: turn_of(side) for arm, side in sides.items()}
        rates = rates_of(turns, given.rounds or (3 if given.quick else 15))
        for arm, (rate, wall) in rates.items():
            label = f"{name}, {what}, {arm} (wall {wall:,.0f})"
            report.add(label, rate, unit, peer=rates[given.arms[0]][0])
    for side in sides.values():
        side.close()


def arguments() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__ or "")
    options.add_argument("--only", nargs="+", choices=list(CONTESTS), default=list(CONTESTS))
    options.add_argument("--num-envs", nargs="+", type=int, default=[1, 8, 128])
    options.add_argument("--arms", nargs="+", choices=list(ARMS), default=["product", "plain"])
    options.add_argument("--rounds", type=int, help="turns of each arm; 15, quick 3")
    return options.parse_args()


def main() -> None:
    """Measure everything."""
    given = arguments()
    torch.set_num_threads(1)
    report = Report((__doc__ or "").splitlines()[0], as_json=given.json)
    for name in given.only:
        for num_envs in given.num_envs:
            measure(report, CONTESTS[name], num_envs, given)


if __name__ == "__main__":
    main()
