"""Which opponent plays the other side in each env, episode by episode.

Called by the training loop: `begin` where episodes have begun, `act` before each step, `end` where
they have ended, `after_step` after each. Opponents that the env plays itself ("weak", "none") are
ignored here; these are not:

- ``caller:newest``, or ``caller``: the learner itself, as of the last refresh
- ``caller:pool``: a past self, drawn per episode through `Learnability`
- ``caller:archive``: an agent of the archive, drawn likewise; the newest self while it is empty
- ``caller:NAME``: one agent, by its id in the archive or the path of a run, checkpoint or file

The newest self is refreshed in place, also during an episode; it is at most `REFRESH_EVERY_STEPS`
env steps behind the learner. All others never change. An opponent that has lost its seat plays its
running episodes to their end; these results are counted here, and credited to no seat. An archive
that cannot be reached for a while does not stop the training: results wait, and `explain` says why.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.agents.base import Agent, Observations
from stepladder.agents.player import Player, make_player
from stepladder.errors import ConfigError, RunError, SnapshotError
from stepladder.games.game import CALLED
from stepladder.saving.saved_fields import read_count
from stepladder.saving.snapshot import Snapshot, difference, require_snapshot
from stepladder.training.config import OpponentsConfig
from stepladder.training.opponents.archive import Archive, find_opponent
from stepladder.training.opponents.archive_opponents import ArchiveOpponents
from stepladder.training.opponents.lineup import Lineup, MakePlayer, OpponentChoice
from stepladder.training.opponents.member import Member, load_members, require_fit, save_members
from stepladder.training.opponents.names import (
    ARCHIVE,
    NAMED,
    NEWEST,
    POOL,
    called_name,
    unannounced,
)
from stepladder.training.opponents.reports import LeagueExplanation, ResultCounts, rates
from stepladder.training.opponents.seats import Seats, require_outcome
from stepladder.training.opponents.standing import Standing

REFRESH_EVERY_STEPS = 2_048
"""Env steps after which the newest self is refreshed, if the learner has learnt meanwhile."""

OPPONENT_METRICS = "env_opponents"
SCHEMA = 1

RowList = Sequence[int] | npt.NDArray[np.int64]


class League:
    """Lets neural opponents play, each in its own rows.

    Args:
        config: How opponents are kept, and how they play.
        names: Every name that may come, scripted ones included; named agents are loaded here.
        agent: The learner. Only its weights are ever copied.
        num_envs: Rows of the vector env.
        seed: Of all draws; no global generator is touched.
        device: Where opponents compute.
        archive: Agents on disk; by default that of the config, if it names one.
        origin: Name of the run in the archive.
        make: Makes players.

    Raises:
        ConfigError: No opponent has this name, or it does not fit the env.
        SnapshotError: A named agent is damaged.
    """

    def __init__(
        self,
        config: OpponentsConfig,
        names: Iterable[str],
        agent: Agent,
        num_envs: int,
        *,
        seed: int = 0,
        device: Any = "cpu",
        archive: Archive | None = None,
        origin: str = "run",
        make: MakePlayer = make_player,
    ):
        self.config = config
        self._seed, self._device, self._make = seed, device, make
        self._description = agent.description()
        if archive is None and config.archive is not None:
            archive = Archive(config.archive)
        self._archive = archive
        self._standing = None if archive is None else Standing(archive, origin)
        self._trouble = ""
        self._tally = ResultCounts()
        self._lineup = Lineup(num_envs, agent.action_space, self._player)
        self._next_snapshot, self._next_refresh = config.snapshot_every_steps, 0
        self._num_updates = agent.num_updates
        self._newest = Member.of_agent(agent, 0, NEWEST)
        called = {called for name in names if (called := called_name(name)) is not None}
        self._named = {name: self._find(name) for name in sorted(called - {NEWEST, POOL, ARCHIVE})}
        self._seats: dict[str, Seats] = {}
        self._others: ArchiveOpponents | None = None
        if POOL in called:
            self._seats[POOL] = Seats(POOL, config.pool_size, self._seed_of(POOL))
            # There must be an opponent from the first episode on.
            self._seats[POOL].add(Member.of_agent(agent, 0, "step 0"))
        if ARCHIVE in called:
            self._others = self._from_archive()
            self._seats[ARCHIVE] = self._others.seats

    # Playing.

    def begin(self, rows: RowList, names: Sequence[str]) -> None:
        """Choose the opponents of episodes that have just begun.

        Args:
            rows: Which rows.
            names: Their opponents, as the tasks name them; one per row.

        Raises:
            ConfigError: A name was not announced.
        """
        choices: dict[int, OpponentChoice] = {}
        for row, name in zip(np.asarray(rows).tolist(), names, strict=True):
            if self._lineup.playing(row) is not None:
                self._lineup.leave(row)
                self._tally.num_aborted += 1
            called = called_name(name)
            if called is not None:
                choices[row] = self._choose(called)
        self._lineup.begin(choices)

    def act(self, observations: Observations) -> npt.NDArray[Any]:
        """Return the other side's actions: one forward pass for each distinct opponent.

        Args:
            observations: What the other side sees, in all rows.

        Returns:
            Actions of all rows; zeros in rows that the env plays itself.
        """
        return self._lineup.act(observations, self.config.deterministic)

    def end(self, rows: RowList, outcomes: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """Count the results of episodes; rows that the env played itself are ignored.

        Args:
            rows: Which rows.
            outcomes: 1 where the learner has won, 0 for a draw, -1 where it has lost.

        Raises:
            ConfigError: An outcome is none of these. Then nothing was counted.
        """
        results = list(zip(np.asarray(rows).tolist(), np.asarray(outcomes).tolist(), strict=True))
        for _, outcome in results:
            require_outcome(outcome)
        for row, outcome in results:
            self._credit(row, int(outcome))
            self._lineup.leave(row)
        self._drop_unseated()

    def _choose(self, called: str) -> OpponentChoice:
        if called in (POOL, ARCHIVE):
            if called not in self._seats:
                raise unannounced(called)
            seats = self._seats[called]
            draw = seats.draw()
            if draw is not None:
                member = seats.members[draw.task_id]
                return OpponentChoice(called, f"{called}/{draw.task_id}", member, draw)
        elif called != NEWEST:
            if called not in self._named:
                raise unannounced(called)
            return OpponentChoice(NAMED, f"{NAMED}/{called}", self._named[called])
        return OpponentChoice(NEWEST, NEWEST, self._newest)

    def _credit(self, row: int, outcome: int) -> None:
        found = self._lineup.playing(row)
        if found is None:
            return
        opponent, draw = found
        self._tally.add(opponent.kind, outcome)
        if opponent.kind in self._seats:
            self._seats[opponent.kind].report(draw, outcome)
        if self._standing is not None and opponent.member.is_archived:
            self._standing.note(opponent.member.name, outcome)

    def _player(self, key: str, member: Member) -> Player:
        return self._make(
            member.description,
            member.weights,
            self._lineup.num_envs,
            device=self._device,
            seed=self._seed_of(key),
        )

    # Following the learner.

    def after_step(self, step: int, agent: Agent) -> None:
        """Refresh the newest self, store a past self and read the archive, if it is time.

        Args:
            step: Env steps so far, of all envs together.
            agent: The learner.
        """
        if step >= self._next_refresh and agent.num_updates != self._num_updates:
            self._next_refresh = step + REFRESH_EVERY_STEPS
            self.refresh(agent, step)
        if step >= self._next_snapshot:
            every = self.config.snapshot_every_steps
            self._next_snapshot = (step // every + 1) * every
            if POOL in self._seats:
                self._seats[POOL].add(Member.of_agent(agent, step, f"step {step}"))
            self._synchronise_archive()
            self._drop_unseated()

    def _synchronise_archive(self) -> None:
        """Read the archive and report results; what fails now is done next time."""
        self._trouble = ""
        try:
            if self._others is not None:
                self._others.look()
            if self._standing is not None:
                self._standing.report()
        except RunError as error:
            self._trouble = str(error)

    def refresh(self, agent: Agent, step: int) -> None:
        """Give the newest self the weights of the learner, also during episodes."""
        self._num_updates = agent.num_updates
        self._newest = Member.of_agent(agent, step, NEWEST)
        opponent = self._lineup.opponents.get(NEWEST)
        if opponent is not None:
            opponent.member = self._newest
            opponent.player.load_weights(self._newest.weights)

    def enter_archive(self, agent: Agent, step: int, tags: Iterable[str] = ()) -> str | None:
        """Put the learner as it is now into the archive, with its rating.

        Returns:
            Its id; None if there is no archive.
        """
        return None if self._standing is None else self._standing.enter(agent, step, tags)

    def _drop_unseated(self) -> None:
        """Drop opponents that have lost their seat and play no row."""
        seated = set(map(id, self._seated()))
        self._lineup.dismiss(
            lambda opponent: opponent.kind not in self._seats or id(opponent.member) in seated
        )

    def _seated(self) -> list[Member]:
        return [member for seats in self._seats.values() for member in seats.members.values()]

    # Reports.

    def metrics(self) -> dict[str, float]:
        """Return the results since the last call, by names of metrics."""
        metrics = rates(OPPONENT_METRICS, self._tally.take())
        for kind, seats in self._seats.items():
            metrics[f"{OPPONENT_METRICS}/members/{kind}"] = float(len(seats.members))
        if self._standing is not None and self._standing.rating is not None:
            metrics[f"{OPPONENT_METRICS}/rating"] = self._standing.rating.value
        if self._trouble:
            metrics[f"{OPPONENT_METRICS}/archive_trouble"] = 1.0
        return metrics

    def explain(self) -> LeagueExplanation:
        """Return which opponents are played, and why."""
        return LeagueExplanation(
            results={
                kind: (won, drawn, lost)
                for kind, (won, drawn, lost) in self._tally.totals.items()
                if won + drawn + lost
            },
            num_aborted=self._tally.num_aborted,
            seats={kind: tuple(seats.explain()) for kind, seats in self._seats.items()},
            skipped={} if self._others is None else dict(self._others.skipped),
            trouble=self._trouble,
        )

    # Saving and resuming.

    def state(self) -> Snapshot:
        """Return everything needed to continue exactly here, weights of opponents included.

        Arrays may be the opponents' own memory rather than copies: write them, do not change them.
        """
        members = [self._newest, *self._seated()]
        members += [opponent.member for opponent in self._lineup.opponents.values()]
        # Each once: an opponent that plays usually has a seat as well.
        distinct = list({id(member): member for member in members}.values())
        indices = {id(member): index for index, member in enumerate(distinct)}

        def index_of(member: Member) -> int:
            return indices[id(member)]

        state = {
            **self._identity(),
            "tally": self._tally.to_json(),
            "standing": None if self._standing is None else self._standing.to_json(),
            "last_seated": "" if self._others is None else self._others.last_seated,
            "next_snapshot": self._next_snapshot,
            "next_refresh": self._next_refresh,
            "num_updates": self._num_updates,
        }
        parts = {kind: seats.snapshot(index_of) for kind, seats in self._seats.items()}
        parts |= {"members": save_members(distinct), "lineup": self._lineup.snapshot(index_of)}
        return Snapshot.of_parts(state, **parts)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue exactly where `state` was called, if the archive has not changed meanwhile.

        Raises:
            SnapshotError: The state is damaged, or of another league. Then nothing has changed.
        """
        require_snapshot(snapshot)
        identity = self._identity()
        found = difference({name: snapshot.state.get(name) for name in identity}, identity)
        if found:
            raise SnapshotError(
                f"the saved opponents do not fit this training: {found}. Resume with the settings "
                "that they were saved with."
            )
        before = self.state()
        try:
            self._restore_parts(snapshot)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self._restore_parts(before)
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(
                f"the saved league is damaged ({type(error).__name__}: {error}). Use an older "
                "checkpoint."
            ) from error

    def _restore_parts(self, snapshot: Snapshot) -> None:
        members, state = load_members(snapshot.part("members")), snapshot.state
        for member in members:
            self._try_out(member)
        for kind, seats in self._seats.items():
            seats.restore(snapshot.part(kind), members)
        self._lineup.restore(snapshot.part("lineup"), members)
        self._newest = members[0]
        self._tally = ResultCounts.from_json(state["tally"])
        if self._standing is not None:
            self._standing.restore(state["standing"])
        if self._others is not None:
            self._others.last_seated = str(state["last_seated"])
        self._next_snapshot, self._next_refresh, self._num_updates = (
            read_count(state.get(name), f"{name} of {snapshot.place}")
            for name in ("next_snapshot", "next_refresh", "num_updates")
        )

    def _identity(self) -> dict[str, Any]:
        """Return what a saved state must have in common with this league."""
        return {
            "schema": SCHEMA,
            "num_envs": self._lineup.num_envs,
            "seed": self._seed,
            "pool_size": self.config.pool_size,
            "kinds": sorted(self._seats),
            "named": sorted(self._named),
            "has_archive": self._archive is not None,
        }

    # Loading.

    def _find(self, name: str) -> Member:
        """Load a named opponent and check that it can play."""
        member = find_opponent(name, self._archive)
        require_fit(member, self._description)
        self._try_out(member)
        return member

    def _try_out(self, member: Member) -> None:
        """Raise `SnapshotError` if a member cannot play."""
        self._make(member.description, member.weights, 1)

    def _from_archive(self) -> ArchiveOpponents:
        if self._archive is None:
            raise ConfigError(
                f"an opponent is {CALLED + ARCHIVE!r}, and no archive is named. Set "
                "opponents.archive to its folder."
            )
        seed = self._seed_of(ARCHIVE)
        opponents = ArchiveOpponents(self._archive, self._description, seed, self._try_out)
        opponents.look()
        return opponents

    def _seed_of(self, what: str) -> int:
        """Return a seed that differs for each name."""
        sequence = np.random.SeedSequence([self._seed, zlib.crc32(what.encode())])
        return int(sequence.generate_state(1, np.uint64)[0] >> 1)
