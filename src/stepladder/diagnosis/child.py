"""The process in which code of the user runs: goes through the probes and sends results.

Started by `process` as a program. Everything that the env may do wrong happens here: what it raises
is sent as a `Trouble`; if it crashes or hangs, the parent finds this process gone, and in a
file the place where it was.
"""

import faulthandler
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

import stepladder
from stepladder import named
from stepladder.diagnosis.evidence import Made, RandomPlay, Trouble, TroubleKind
from stepladder.diagnosis.probes import conforming, drawing, repeating, rows
from stepladder.diagnosis.probes.playing import PlayProbe
from stepladder.diagnosis.probes.subject import Subject
from stepladder.envs.ids import UnknownEnvError
from stepladder.errors import BuildError, ConfigError, DeliveryError, SignalError, StepladderError
from stepladder.games.registry import GAMES
from stepladder.training.config import TrainingConfig

PREPARING_S = 300.0
"""Seconds in which this library may compile kernels; they are cached for the next time."""

SLOWER_TO_MAKE = 3.0
"""Factor on the limit for importing and making an env, here and in workers."""

USUAL = frozenset(("gymnasium", "importlib", "llvmlite", "multiprocessing", "numba", "numpy"))
"""Folders of libraries in which what an env does wrong may show."""

USUAL_LENGTH = 100
"""Env steps of an episode, where none has ended."""


@dataclass(frozen=True, kw_only=True)
class ExaminationOrder:
    """What the child is asked to examine."""

    config: TrainingConfig
    num_episodes: int
    seconds: float
    limit_s: float
    """Seconds that one probe may take."""

    with_workers: bool = True
    """Whether a small vector env is stepped, too."""

    only_repeats: bool = False
    """Whether only the digests of the first task are wanted, to compare with another process."""

    given: dict[str, Any] = field(default_factory=dict[str, Any])
    """Code that stands for names of the config in the process that asks."""

    specs: tuple[EnvSpec, ...] = ()
    """Envs that are registered there."""


Send = Callable[[str, Any], None]
"""Sends the name of a part of the evidence and its value; ``"begin"`` says what is next."""


class Examination:
    """Goes through the probes; what they raise is told, and the next one goes on.

    Args:
        order: What to do.
        send: Gets the results.
    """

    def __init__(self, order: ExaminationOrder, send: Send):
        self.order, self._send = order, send
        # Our own games compile their kernels when they are first played.
        is_ours = order.config.env.rpartition(":")[2] in GAMES
        self._limit_s = PREPARING_S if is_ours else order.limit_s
        self._has_raised = False

    def run(self) -> None:
        """Do everything that was ordered."""
        subject = self._examine()
        if subject is not None:
            self._send("memory", subject.memory)

    def _examine(self) -> Subject | None:
        order = self.order
        subject: Subject | None = None
        made: Made | None = None
        limit_s = SLOWER_TO_MAKE * self._limit_s
        with self._probing("making the env", "not made", limit_s=limit_s):
            for name, thing in order.given.items():
                named.give(name, thing)
            for spec in order.specs:
                gym.registry.setdefault(spec.id, spec)
            subject = Subject(order.config, order.seconds, order.num_episodes)
            made = subject.describe()
            self._send("made", made)
            self._send("config", _of_this_library(subject.config))
        if subject is None or made is None:
            return subject
        if order.only_repeats:
            with self._probing("repeating an episode in another process"):
                self._send("repeats", repeating.probe(_with_one_task(subject), made.seconds))
            return subject
        # Kernels are compiled here, so that no env is blamed for the time that it takes.
        with self._probing("preparing", "not made", limit_s=PREPARING_S):
            made = replace(made, needs_success=subject.prepare())
            self._send("made", made)
        if self._has_raised:
            return subject
        play = self._play(subject, made)
        unbuilt = dict(play.unbuilt)
        self._draw(subject, made, play)
        built = tuple(one for one in subject.tasks if one is None or one.name not in unbuilt)
        if self._has_raised or not built:
            return subject
        subject.tasks = built
        with self._probing("running Gymnasium's checker"):
            self._send("conformity", conforming.probe(subject, bool(play.cast)))
        with self._probing("repeating episodes"):
            self._send("repeats", repeating.probe(subject, made.seconds))
        if order.with_workers and not (
            made.is_batched or self._has_raised or play.unbuilt or _cannot_be_read(play)
        ):
            limit_s = SLOWER_TO_MAKE * self._limit_s
            with self._probing("stepping envs in workers", limit_s=limit_s):
                self._send("rows", rows.probe(subject))
        return subject

    def _play(self, subject: Subject, made: Made) -> RandomPlay:
        """Play at random; also of an env that raises, what was seen before is sent."""
        probe = PlayProbe(subject, made.needs_success and made.has_tasks)
        with self._probing("playing at random", tasks=lambda: probe.now and (probe.now.name,)):
            probe.run()
        play = probe.result()
        self._send("play", play)
        return play

    def _draw(self, subject: Subject, made: Made, play: RandomPlay) -> None:
        config = self.order.config
        if not made.has_tasks or len(made.labels) < 2 or config.curriculum.needs_trainer:
            return
        with self._probing("drawing tasks"):
            lengths = [one.length for one in play.episodes]
            length = round(sum(lengths) / len(lengths)) if lengths else USUAL_LENGTH
            num_episodes = config.total_steps // max(1, length)
            num_episodes = min(num_episodes, config.total_episodes or num_episodes)
            curriculum = subject.make_curriculum()
            seconds = self.order.seconds / 2.0
            found = drawing.probe(curriculum, made.labels, num_episodes, length, seconds)
            self._send("drawing", found)

    @contextmanager
    def _probing(
        self,
        probe: str,
        kind: TroubleKind = "raised",
        tasks: Callable[[], Any] = tuple,
        limit_s: float | None = None,
    ) -> Iterator[None]:
        """Tell what is being done; tell of what is raised."""
        self._send("begin", (probe, limit_s or self._limit_s))
        try:
            yield
        except (Exception, SystemExit) as error:  # code of the user may raise anything
            if isinstance(error, UnknownEnvError):
                kind = "unknown"
            elif isinstance(error, DeliveryError):
                kind = "no delivery"
            elif isinstance(error, SystemExit):
                kind = "died"
            # What the settings get wrong is told by the library in one line already.
            says_all = isinstance(error, StepladderError) and not isinstance(
                error, BuildError | SignalError
            )
            text = str(error) if says_all else f"{type(error).__name__}: {error}"
            self._has_raised = True
            self._send(
                "trouble",
                Trouble(
                    kind=kind,
                    probe=probe,
                    text=" ".join(text.split()),
                    where=place_of(error),
                    tasks=tuple(tasks() or ()),
                ),
            )


def place_of(error: BaseException) -> str:
    """Return where code of the user raised an error: file, line and function."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, ConfigError):
        return ""
    for frame in reversed(frames):
        if is_users(frame.filename):
            return f"{Path(frame.filename).name} line {frame.lineno}, in {frame.name}"
    return ""


def is_users(filename: str) -> bool:
    """Whether a file may be the env's own: not of this library, of Python, or of a usual one."""
    path = Path(filename)
    ours = Path(stepladder.__file__).parent in path.parents
    usual = not USUAL.isdisjoint(path.parts) or path.parent == Path(os.__file__).parent
    return path.suffix == ".py" and not (ours or usual)


def _of_this_library(config: TrainingConfig) -> TrainingConfig | None:
    """Return a config that can be read without importing code of the user; else None."""
    classes = (type(config.curriculum), type(config.agent))
    is_ours = all(kind.__module__.startswith("stepladder.") for kind in classes)
    return config if is_ours else None


def _with_one_task(subject: Subject) -> Subject:
    subject.tasks = subject.tasks[:1]
    return subject


def _cannot_be_read(play: RandomPlay) -> bool:
    return any(one.success_trouble for one in play.episodes) or bool(play.not_finite)


def main() -> None:
    """Take an order from the pipe whose number is the first argument; the second names a file."""
    connection = Connection(int(sys.argv[1]))
    stacks = open(sys.argv[2], "w")  # noqa: SIM115, written by the handler until the process ends
    faulthandler.enable(stacks)
    sys.path[:] = connection.recv()
    order: ExaminationOrder = connection.recv()

    def send(part: str, value: Any) -> None:
        if part == "begin":
            # The stack of a probe that takes too long; the process then ends.
            faulthandler.dump_traceback_later(value[1], file=stacks, exit=True)
        connection.send((part, value))

    Examination(order, send).run()
    faulthandler.cancel_dump_traceback_later()
    connection.send(("end", None))
    connection.close()
    # What an env leaves running at exit, such as threads, shall not keep this process.
    sys.stdout.flush()
    os._exit(0)
