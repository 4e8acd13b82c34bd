"""The training loop: act, step, remember, learn; one loop for one env and for many.

`session` drives it and decides when to report, evaluate and save. In a step all envs act in one
forward pass, are stepped together, the curriculum learns from what has ended, then the agent from
what has happened. Only then may a phase change; all envs are reset then, so that no episode of the
old phase reaches into the new one.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.agents.base import VectorStep, make_agent
from stepladder.agents.room import checked_device
from stepladder.envs.tracking.score_reporter import ScoreReporter, wanted_scores
from stepladder.errors import SnapshotError
from stepladder.saving.saved_array import SavedArray
from stepladder.saving.saved_fields import read_count, read_fields
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import Pool
from stepladder.training.config import TrainingConfig
from stepladder.training.contradictions import neural_opponents
from stepladder.training.episodes import Episodes
from stepladder.training.opponents.league import League
from stepladder.training.world import TrainingWorld, mirror_of


@dataclass
class Clockwork:
    """Seconds of a training by activity."""

    env: float = 0.0
    act: float = 0.0
    learn: float = 0.0

    def since(self, before: "Clockwork") -> "Clockwork":
        """Return the seconds since an earlier reading."""
        return Clockwork(self.env - before.env, self.act - before.act, self.learn - before.learn)


class Trainer:
    """One agent, its envs and its curriculum.

    Args:
        config: What is trained, and how.
        name: What the run is called in an archive of opponents.

    Raises:
        ConfigError: The parts do not fit together.
    """

    def __init__(self, config: TrainingConfig, name: str = "run"):
        self.config, self._name = config, name
        self.device = checked_device(config.device)
        tasks: Any = config.task_source()
        if config.capacity is not None:
            source: Any = config.curriculum.editable(tasks)
            tasks = Pool(source, config.capacity, config.seed)
        self.curriculum = config.curriculum.make(tasks, seed=config.seed)
        self.world = TrainingWorld(config, self.curriculum)
        try:
            self.agent = make_agent(
                config.agent,
                self.world.observation_space,
                self.world.action_space,
                self.world.num_rows,
                device=self.device,
                seed=config.seed,
                mirror=mirror_of(config, self.device),
            )
            self.league = self._make_league()
            self._scores = self._make_reporter()
        except BaseException:
            self.world.envs.close()
            raise
        self.seconds = Clockwork()
        self.episodes = Episodes()
        self.num_steps = 0
        """Env steps of training; those of evaluations are counted by `session`."""
        self.num_updates = 0
        self._seen: Any = None
        self._took_part: list[npt.NDArray[np.bool_]] = []
        """Which agents took part in each step of the rollout, where scores need it."""
        self._is_playing = np.ones(self.world.num_rows, dtype=np.bool_)
        self.curriculum.add_listener(self.episodes.take)

    def _make_league(self) -> League | None:
        config = self.config
        names = neural_opponents(config)
        if not names and config.opponents.archive is None:
            return None
        return League(
            config.opponents,
            names,
            self.agent,
            config.num_envs,
            seed=config.seed,
            device=self.device,
            origin=self._name,
        )

    def _make_reporter(self) -> ScoreReporter | None:
        """Let the agent's advantages reach the curriculum, if it wants them."""
        if not wanted_scores(self.curriculum):
            return None
        reporter = ScoreReporter(self.world.envs)
        self.agent.on_rollout = self._report_advantages
        return reporter

    def _report_advantages(self, advantages: npt.NDArray[Any]) -> None:
        """Report the advantages of a rollout; of rows of agents, those of their envs."""
        assert self._scores is not None
        agents = self.world.agents
        if agents is None:
            self._scores.report(advantages)
            return
        shape = (len(advantages), -1, agents.num_agents)
        took_part = np.stack(self._took_part[-len(advantages) :])
        self._scores.report(advantages.reshape(shape), took_part.reshape(shape))
        self._took_part.clear()

    # Playing and learning.

    def begin(self) -> None:
        """Begin an episode in every env, for the first time."""
        self._seen = self.world.reset(seed=self.config.seed)
        self._is_playing = self.world.playing()
        self._assign_opponents()

    def advance(self) -> None:
        """Do one step of all envs, and learn from it."""
        world, began = self.world, time.perf_counter()
        seen = world.of_learner(self._seen)
        actions = self.agent.act_batch(seen)
        rivals = None
        if self.league is not None and world.has_rivals:
            rivals = self.league.act(world.of_rival(self._seen))
        acted = time.perf_counter()
        phase = self._phase()
        self._seen, rewards, terminated, truncated, infos = world.step(actions, rivals)
        stepped = time.perf_counter()
        world.check(world.of_learner(self._seen), rewards)
        self._learn(seen, actions, rewards, terminated, truncated)
        ended = terminated | truncated
        if self.league is not None:
            self._note_results(ended & self._is_playing, infos)
        self._is_playing = world.playing(ended)
        if self._phase() != phase:
            self._begin_phase()
        learnt = time.perf_counter()
        self.seconds.act += acted - began
        self.seconds.env += stepped - acted
        self.seconds.learn += learnt - stepped

    def _learn(
        self,
        seen: Any,
        actions: npt.NDArray[Any],
        rewards: npt.NDArray[np.float64],
        terminated: npt.NDArray[np.bool_],
        truncated: npt.NDArray[np.bool_],
    ) -> None:
        if self.config.reward_scale != 1.0:
            rewards = rewards * self.config.reward_scale
        self.agent.remember(
            VectorStep(
                observations=seen,
                actions=actions,
                rewards=rewards,
                terminated=terminated,
                truncated=truncated,
                next_observations=self.world.of_learner(self._seen),
                is_playing=self._is_playing,
            )
        )
        self.num_steps += int(np.count_nonzero(self._is_playing))
        if self._scores is not None and self.world.agents is not None:
            self._took_part.append(self._is_playing)
        self.num_updates += self.agent.learn()

    def _note_results(self, ended: npt.NDArray[np.bool_], infos: Mapping[str, Any]) -> None:
        """Report results to the league, and the opponents of new episodes."""
        assert self.league is not None
        if ended.any():
            rows = np.flatnonzero(ended)
            self.league.end(rows, np.asarray(infos["winner"])[rows])
        self._assign_opponents()
        self.league.after_step(self.num_steps, self.agent)

    def _assign_opponents(self) -> None:
        """Name the opponents to the league where an episode has just begun."""
        if self.league is not None and self.world.has_rivals:
            rows = np.flatnonzero(self.world.has_begun())
            if len(rows):
                self.league.begin(rows, self.world.opponents(rows))

    # Phases.

    def _phase(self) -> int:
        return self.curriculum.phase_index

    @property
    def phase(self) -> str | None:
        """Name of the phase in force, if there are phases."""
        return self.curriculum.current_phase

    def _begin_phase(self) -> None:
        """Reset all envs together, and clear the memory unless the config keeps it."""
        clears = self.config.clears_buffer(self.phase or "")
        self._seen = self.world.reset()
        self._is_playing = self.world.playing()
        self._assign_opponents()
        if clears:
            self.agent.forget()
        else:
            self.agent.drop_pending()
        if self._scores is not None:
            # Their rollout is gone.
            self._scores.drop_steps()
            self._took_part.clear()

    # Saving.

    def snapshot(self) -> tuple[Snapshot, Snapshot]:
        """Return the envs with their curriculum, and everything else but the agent."""
        episodes = self.episodes.snapshot()
        state = {
            "num_steps": self.num_steps,
            "num_updates": self.num_updates,
            "seconds": asdict(self.seconds),
        }
        arrays = {"is_playing": self._is_playing.copy()}
        own = Snapshot({**state, **episodes.state}, {**arrays, **episodes.arrays})
        parts = {"own": own} | ({} if self.league is None else {"league": self.league.state()})
        return self.world.envs.snapshot(in_flight=True), Snapshot.of_parts({}, **parts)

    def restore(self, envs: Snapshot, rest: Snapshot) -> bool:
        """Continue where a snapshot was made; the agent is restored before, by itself.

        Returns:
            Whether running games continue. Otherwise they were restarted, as envs that are not
            built in cannot continue.

        Raises:
            SnapshotError: It does not fit.
        """
        own = rest.part("own")
        is_playing = SavedArray("is_playing", self._is_playing).read(own.arrays, own.place)
        num_steps, num_updates = (
            read_count(own.state.get(name), f"{name} of {own.place}")
            for name in ("num_steps", "num_updates")
        )
        seconds = read_fields(Clockwork, own.state.get("seconds"), f"seconds of {own.place}")
        if min(asdict(seconds).values()) < 0.0:
            raise SnapshotError(
                f"seconds of {own.place} are {asdict(seconds)}; expected none below 0. Use an "
                "older one."
            )
        self.episodes.restore(own)
        self.num_steps, self.num_updates, self.seconds = num_steps, num_updates, seconds
        goes_on = self.world.envs.restore(envs, in_flight=True)
        if self.league is not None:
            self.league.restore(rest.part("league"))
        if goes_on:
            self._is_playing = is_playing.copy()
            self._seen = self.world.seen_now()
        else:
            self._seen = self.world.reset()
            self._is_playing = self.world.playing()
            self.agent.drop_pending()
            self._assign_opponents()
        return goes_on

    def close(self) -> None:
        """Close the envs."""
        self.world.envs.close()
