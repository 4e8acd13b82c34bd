"""Any algorithm of RLlib, with a channel: its envs draw from it, its checkpoints hold it.

`with_curriculum` derives such a class from the algorithm's own; `adding` puts it into the config.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

import ray
from ray.rllib.algorithms.algorithm import Algorithm

from stepladder.cluster.channel import RayChannel
from stepladder.cluster.requirements import require_cpus
from stepladder.cluster.rllib.env_maker import EnvMaker
from stepladder.errors import ConfigError
from stepladder.saving.snapshot import Snapshot

COMPONENT = "stepladder_curriculum"
"""The curriculum's name among the components of a checkpoint."""

if TYPE_CHECKING:
    Base = Algorithm
else:
    Base = object


class WithCurriculum(Base):
    """What is added to an algorithm."""

    channel: RayChannel | None = None
    """The channel, while the algorithm lives: `explain`, `counts`, `metrics`."""

    @staticmethod
    def _get_env_id_and_creator(env_specifier: Any, config: Any) -> tuple[Any, Any]:
        """Let RLlib take our maker for an env, which else must be a class or a name."""
        if isinstance(env_specifier, EnvMaker):
            return env_specifier, env_specifier
        return Algorithm._get_env_id_and_creator(env_specifier, config)

    def setup(self, config: Any) -> None:
        """Open the channel, then make the env runners, which connect to it."""
        maker: Any = self.config.env  # type: ignore[union-attr]
        if not isinstance(maker, EnvMaker):
            raise ConfigError(
                f"the env of this config is {maker!r} and no longer the one with the curriculum. "
                "Call add_curriculum after environment()."
            )
        if ray.util.get_current_placement_group() is None:
            require_cpus(cpus_of(self.config), "this algorithm")
        self.channel = RayChannel(maker.make_curriculum, **maker.channel_settings)
        try:
            # Not a copy: env runners are made of this very config.
            maker.reach = self.channel.reach
            super().setup(config)
        except BaseException:
            self.channel.close()
            raise

    def step(self) -> Any:
        """Train once; the results hold the curriculum's metrics, by their names."""
        results = super().step()
        assert self.channel is not None
        for name, value in self.channel.metrics(ends_epoch=True).items():
            # Labels may contain slashes: only the name of the family is nested.
            *families, last = name.split("/", 2)
            place = results
            for family in families:
                place = place.setdefault(family, {})
            place[last] = value
        return results

    def get_state(
        self, components: Any = None, *, not_components: Any = None, **settings: Any
    ) -> Any:
        """Return the algorithm's state, the curriculum included."""
        state = super().get_state(components, not_components=not_components, **settings)
        if self.channel is not None and self._check_component(
            COMPONENT, components, not_components
        ):
            saved = self.channel.snapshot()
            state[COMPONENT] = {"state": saved.state, "arrays": saved.arrays}
        return state

    def set_state(self, state: Any) -> None:
        """Take over a state, the curriculum included."""
        super().set_state(state)
        if self.channel is not None and COMPONENT in state:
            saved = state[COMPONENT]
            self.channel.restore(Snapshot(saved["state"], saved["arrays"], "the checkpoint"))

    def cleanup(self) -> None:
        """End the env runners, then the channel."""
        try:
            super().cleanup()
        finally:
            if self.channel is not None:
                self.channel.close()


def cpus_of(config: Any) -> float:
    """Return how many CPUs the actors of an algorithm ask for together."""
    runners = config.num_env_runners * config.num_cpus_per_env_runner
    per_learner = config.num_cpus_per_learner
    learners = config.num_learners * (1 if per_learner == "auto" else per_learner)
    evaluation = config.evaluation_num_env_runners * config.num_cpus_per_env_runner
    return float(runners + learners + (evaluation or 0))


@cache
def with_curriculum(algorithm: type[Algorithm]) -> type[Algorithm]:
    """Return a class derived from an algorithm's own, with the same name."""
    about = {"__doc__": algorithm.__doc__, "__module__": __name__}
    return type(algorithm.__name__, (WithCurriculum, algorithm), about)
