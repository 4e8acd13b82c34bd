"""The beginning and the end of an episode, inside compiled code.

Between the kernels of the games and a curriculum: an env that begins draws its task from the plan,
an env that ends leaves a record in its mailbox, in the very step in which it happens and in
whichever thread it is stepped. Without a curriculum there is no mailbox, and an env plays the task
it was given.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepladder.compiled import bare, fetch_add, inlined
from stepladder.games.dice import GOLDEN, Dice, mixed
from stepladder.plans.record import TERMINATED, TRUNCATED
from stepladder.plans.status import DONE, NOT_ADMITTED
from stepladder.records import Floats, Words
from stepladder.saving.saved_array import Part, SavedArray
from stepladder.sync import mailbox

EPISODE_DTYPE = np.dtype(
    [
        ("state", "i8"),
        ("episode_return", "f8"),
        ("length", "i8"),
        ("slot", "i8"),
        ("generation", "i8"),
        ("plan_version", "i8"),
        ("success", "f8"),
    ]
)
"""How one env stands: what it plays, return and length so far, and how the last one ended."""

UNBORN, PLAYING, ENDED, UNPREPARED, REFUSED = 0, 1, 2, 3, 4
"""States of an env: it was never reset; it plays; it has ended and waits for its reset; it drew a
task that is not in the table; it could not draw or report. The last two are dealt with outside,
before the step returns.
"""

NEXT_STEP, SAME_STEP, DISABLED = 0, 1, 2
"""When an env that has ended is reset."""

BEGINNINGS, ENDINGS, QUESTIONS = 0, 1, 2
"""Places of `Batch.events`: episodes that began and ended, and envs to be dealt with outside."""

NUM_EVENTS = 3


class Batch(NamedTuple):
    """What the envs of every game have in common; one entry per env, unless it says otherwise."""

    autoreset: Words
    """One number: when an env that has ended is reset."""
    episodes: npt.NDArray[Any]
    """Of dtype `EPISODE_DTYPE`."""
    events: Words
    """Three numbers: what happened in this step, counted."""
    dice: Dice
    seeds: Dice
    """What each env was seeded with."""
    rewards: Floats
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    has_ended: npt.NDArray[np.bool_]
    """Whether an episode ended in this step."""
    has_begun: npt.NDArray[np.bool_]
    """Whether an episode began in this step."""
    block: Words
    """The plan; empty without a curriculum."""
    mails: Words
    """The mailboxes, of shape ``(num_envs, words)``; empty without a curriculum."""
    dials: Floats
    """What the plan's dials said at each env's draw; shape ``(num_envs, num_dials)``."""
    known: Words
    """Per slot: the generation whose task is in the game's table, or -1. Without a curriculum the
    table has a row per env, and this says whether a new task waits there.
    """
    pid: Words
    """One number: this process."""

    def saved_arrays(self, num_slots: int) -> list[SavedArray]:
        """Describe what is kept of a batch in mid-flight.

        Args:
            num_slots: Slots of the curriculum; 1 without one.
        """
        episodes = (
            Part.count("state", "state", REFUSED),
            Part.count("length", "length"),
            # Below 0 if nothing could be drawn.
            Part("slot", "slot", NOT_ADMITTED, num_slots - 1),
            Part.count("generation", "generation"),
            Part.count("plan version", "plan_version"),
            Part.share("success", "success"),
        )
        plain = ("dice", "seeds", "rewards", "terminated", "truncated", "has_ended", "has_begun")
        return [
            SavedArray("batch/episodes", self.episodes, episodes),
            *(SavedArray(f"batch/{name}", getattr(self, name)) for name in plain),
        ]


@inlined
def count_step(batch: Batch, env_index: int, reward: float) -> None:
    """Add one step to an env's episode."""
    batch.rewards[env_index] = reward
    batch.episodes[env_index].episode_return += reward
    batch.episodes[env_index].length += 1


@bare
def end_episode(batch: Batch, env_index: int, success: float, is_terminated: bool) -> None:
    """End an env's episode; with a curriculum, leave a record."""
    episode = batch.episodes[env_index]
    episode.state = ENDED
    episode.success = success
    batch.has_ended[env_index] = True
    fetch_add(batch.events, ENDINGS, 1)
    batch.terminated[env_index] = is_terminated
    batch.truncated[env_index] = not is_terminated
    if len(batch.mails) > 0:
        status = mailbox.post(
            batch.mails[env_index],
            mailbox.HEAD_WORDS + batch.dials.shape[1],
            episode.episode_return,
            episode.length,
            success,
            TERMINATED if is_terminated else TRUNCATED,
        )
        if status != DONE:
            episode.state = REFUSED
            fetch_add(batch.events, QUESTIONS, 1)


@bare
def seed_episode(batch: Batch, env_index: int, seed: int) -> None:
    """Seed an episode by itself, so that one that is replayed after a restore is the same again."""
    batch.dice[env_index] = mixed(batch.seeds[env_index] + np.uint64(seed) * GOLDEN)


@bare
def draw_task(batch: Batch, env_index: int) -> int:
    """Draw what an env plays next; return the row of the table that holds it, or -1 for the same.

    The env can begin if its state is `PLAYING` afterwards. Without a curriculum it always can, and
    plays the task that it was given.
    """
    episode = batch.episodes[env_index]
    episode.episode_return = 0.0
    episode.length = 0
    episode.state = PLAYING
    batch.has_begun[env_index] = True
    fetch_add(batch.events, BEGINNINGS, 1)
    if len(batch.mails) == 0:
        if batch.known[env_index] == 0:
            return -1
        batch.known[env_index] = 0
        return env_index
    slot, generation, _, version, seed, _, _, _ = mailbox.start(
        batch.block, batch.mails[env_index], env_index, batch.pid[0], batch.dials[env_index]
    )
    episode.slot, episode.generation, episode.plan_version = slot, generation, version
    if slot < 0:
        episode.state = REFUSED
        fetch_add(batch.events, QUESTIONS, 1)
        return -1
    seed_episode(batch, env_index, seed)
    if batch.known[slot] != generation:
        episode.state = UNPREPARED
        fetch_add(batch.events, QUESTIONS, 1)
        return -1
    return slot
