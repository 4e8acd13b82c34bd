"""Agents on disk that many runs share: one folder each, a log of games, and ratings.

Runs add their agents here, play against those of other runs (`archive_opponents`), and report the
results. Any number of processes may do so at once: writers take turns by a lock that ends with its
process, every agent and every file appears whole or not at all, and readers need no lock. Damaged
and foreign entries are skipped with a reason.

    archive/
      sac-2000000-1f3c9a2b70d4/   an agent: agent.json, weights.safetensors
      matches.jsonl               every game that counts; ratings are computed from it alone
      ratings.json                the ratings, and how far the log was read
      archive.lock
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stepladder.errors import ConfigError, RunError, SnapshotError
from stepladder.files import is_real_folder, read_json, sync
from stepladder.training.checkpoints import read_policy
from stepladder.training.opponents.entry import (
    AGENT,
    AGENT_ID,
    Entry,
    id_of,
    read_entry,
    write_entry,
)
from stepladder.training.opponents.files import (
    append_entry,
    locked,
    naming,
    read_entries,
    replace_file,
)
from stepladder.training.opponents.member import Member, require_finite
from stepladder.training.opponents.ratings import PairGames, Rating, Ratings

ARCHIVE_LOCK, LOG, RATINGS = "archive.lock", "matches.jsonl", "ratings.json"
SCHEMA = 1

_PART = ".part"
_OWN = (ARCHIVE_LOCK, LOG, RATINGS)
_LEFT = re.compile(rf"\.(?:{AGENT_ID.pattern}|{RATINGS}\.\d+){_PART}", re.ASCII)


@dataclass(frozen=True)
class Listing:
    """What is in an archive."""

    entries: tuple[Entry, ...]
    """Every agent, the oldest first."""

    skipped: Mapping[str, str]
    """Folders that do not hold a usable agent, with the reason."""


class Archive:
    """A folder of agents.

    Args:
        folder: Where it is; made when something is first written.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    # Agents.

    def add(
        self,
        member: Member,
        *,
        origin: str,
        tags: Iterable[str] = (),
        former: str | None = None,
    ) -> str:
        """Put an agent into the archive; return its id.

        Adding the same agent again changes nothing, so that a resumed run may.

        Args:
            member: The agent.
            origin: The run it comes from.
            tags: Words to find it by.
            former: Its name while it was learning; it starts with the rating it had then.
        """
        new_id = id_of(member, origin)
        entry = Entry(
            agent_id=new_id,
            description=dict(member.description),
            origin=origin,
            step=member.step,
            tags=tuple(tags),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        with self._writing():
            target = self.folder / new_id
            if former is not None and new_id not in self._read_ratings().known():
                self._log({"entered": new_id, "as": former})
            if not target.exists():
                part = self.folder / f".{new_id}{_PART}"
                write_entry(part, entry, member)
                part.rename(target)
                sync(self.folder)
        return new_id

    def remove(self, agent_id: str) -> None:
        """Take an agent out; its games stay in the log.

        Raises:
            ConfigError: There is none with this id.
        """
        with self._writing():
            folder = self._folder_of(agent_id)
            # Renamed first: a kill in between leaves no half of an agent.
            part = folder.with_name(f".{agent_id}{_PART}")
            folder.rename(part)
            shutil.rmtree(part)

    def list(self) -> Listing:
        """Return all agents, without their weights."""
        entries: list[Entry] = []
        skipped: dict[str, str] = {}
        with naming(self.folder):
            folders = sorted(self.folder.iterdir()) if self.folder.exists() else []
        for folder in folders:
            if folder.name in _OWN or folder.name.startswith("."):
                continue
            try:
                entries.append(read_entry(folder))
            except SnapshotError as error:
                # Another process may have removed it meanwhile, which is not a problem.
                if folder.exists():
                    skipped[folder.name] = str(error)
        entries.sort(key=lambda entry: (entry.created, entry.agent_id))
        return Listing(tuple(entries), skipped)

    def load(self, agent_id: str) -> Member:
        """Return an agent with its weights.

        Raises:
            ConfigError: There is none with this id.
            SnapshotError: It is damaged.
        """
        return read_entry(self._folder_of(agent_id)).load()

    def __contains__(self, agent_id: object) -> bool:
        """Say whether there is an agent with this id."""
        return (
            isinstance(agent_id, str)
            and AGENT_ID.fullmatch(agent_id) is not None
            and is_real_folder(self.folder / agent_id)
        )

    def _folder_of(self, agent_id: str) -> Path:
        if agent_id not in self:
            present = ", ".join(entry.agent_id for entry in self.list().entries[:5]) or "none"
            raise ConfigError(
                f"the archive {self.folder} has no agent {agent_id!r}; it has {present}. "
                "Use one of its ids."
            )
        return self.folder / agent_id

    # Ratings.

    def rate(
        self,
        games: Iterable[PairGames],
        *,
        learner: str | None = None,
        origin: str | None = None,
        batch: int = 0,
    ) -> None:
        """Count games.

        Args:
            games: Between ids of agents, baselines ("weak", "strong") and learners.
            learner: The one that is still learning: only its rating changes.
            origin: The run that played the games, if they are numbered.
            batch: Their number. A number that was there, or a lower one, is not counted again, so
                that a resumed run may report what it has reported before.
        """
        entry = {
            "origin": origin,
            "batch": batch,
            "learner": learner,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "games": [vars(one) for one in games if one.outcomes],
        }
        with self._writing():
            if entry["games"] and not self._read_ratings().has_batch(origin, batch):
                self._log(entry)

    def ratings(self) -> Ratings:
        """Return all ratings."""
        with naming(self.folder):
            return self._read_ratings()

    def rating(self, who: str) -> Rating:
        """Return the rating of an agent, a baseline or a learner; the initial one if none."""
        return self.ratings()[who]

    def _log(self, entry: Mapping[str, Any]) -> None:
        """Write an entry and what follows from it; called by the only writer."""
        ratings = self._read_ratings()
        ratings.apply(entry)
        read_to = append_entry(self.folder / LOG, entry)
        document = {"schema": SCHEMA, "read_to": read_to, **ratings.to_json()}
        replace_file(self.folder / RATINGS, json.dumps(document, indent=1).encode())

    def _read_ratings(self) -> Ratings:
        """Return the ratings up to the end of the log.

        Entries that were logged but not rated, because the writer was killed in between, are rated
        now. Ratings that cannot be read are computed from the whole log. Damaged entries are
        skipped.
        """
        ratings, start = self._rated_so_far()
        for entry in read_entries(self.folder / LOG, start):
            with suppress(SnapshotError):
                ratings.apply(entry)
        return ratings

    def _rated_so_far(self) -> tuple[Ratings, int]:
        log = self.folder / LOG
        try:
            document = read_json(self.folder / RATINGS)
            read_to = int(document["read_to"])
            if document["schema"] == SCHEMA and 0 <= read_to <= log.stat().st_size:
                return Ratings.from_json(document), read_to
        except (FileNotFoundError, KeyError, TypeError, ValueError):
            pass
        return Ratings(), 0

    # Writing.

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Be the only writer; remove what killed writers left unfinished."""
        with naming(self.folder):
            self._refuse_foreign()
            self.folder.mkdir(parents=True, exist_ok=True)
            with locked(self.folder / ARCHIVE_LOCK):
                for left in self.folder.iterdir():
                    if not _LEFT.fullmatch(left.name):
                        continue
                    if is_real_folder(left):
                        shutil.rmtree(left)
                    else:
                        left.unlink(missing_ok=True)
                yield

    def _refuse_foreign(self) -> None:
        """Raise if the folder holds something else than an archive."""
        if not self.folder.exists() or os.path.lexists(self.folder / ARCHIVE_LOCK):
            return
        for entry in self.folder.iterdir():
            if entry.name not in _OWN and not os.path.lexists(entry / AGENT):
                raise RunError(
                    f"{self.folder} is not empty and holds no archive: it has {entry.name!r}. "
                    "Choose a new or empty folder."
                )


def find_opponent(name: str, archive: Archive | None = None) -> Member:
    """Return one opponent by name; used by `league` and by evaluations.

    Args:
        name: An id of the archive; else a path: a run (its newest checkpoint), a checkpoint, the
            folder of an archived agent, or a file with a policy.
        archive: Where ids are looked up, if anywhere.

    Raises:
        ConfigError: No opponent has this name.
        SnapshotError: It is damaged.
    """
    if archive is not None and name in archive:
        return archive.load(name)
    path = Path(name)
    if not path.exists():
        among = "" if archive is None else f" and no agent in the archive {archive.folder}"
        raise ConfigError(
            f"opponent {name!r} is not a file or folder{among}. Give a path, such as that of a "
            "run, or an id."
        )
    if (path / AGENT).is_file():
        # Results count nowhere: it is in another archive than that of this run.
        return replace(read_entry(path.resolve()).load(), is_archived=False)
    try:
        saved = read_policy(path)
    except RunError as error:
        raise SnapshotError(f"opponent {name!r} cannot be played: {error}") from error
    return require_finite(Member(name=name, description=saved.description, weights=saved.weights))
