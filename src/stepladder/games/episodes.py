"""The beginning and the end of an episode, inside compiled code.

Between the kernels of the games and a curriculum. An env that begins draws its task from the plan;
an env that ends posts a record to its mailbox: in the same step, and in the thread that steps it.
Without a curriculum there is no mailbox, and an env plays the task that it was given.
"""

import os
from typing import Annotated, NamedTuple

import numpy as np

from stepladder.arrays import Flags, Floats, Words
from stepladder.compiled import bare, fetch_add, inlined
from stepladder.games.dice import GOLDEN, Dice, mixed
from stepladder.plans.record import TERMINATED, TRUNCATED
from stepladder.plans.status import DONE, ENDED, NOT_ADMITTED, PLAYING, REFUSED, UNPREPARED
from stepladder.records import Count, Fields, Limits, Records, Share
from stepladder.saving.saved_array import SavedArray
from stepladder.sync import mailbox

FLAGS = ("terminated", "truncated", "has_ended", "has_begun")


class Episode(Fields):
    """What one env plays, return and length so far, and how its last episode ended."""

    state: Annotated[int, Limits(0, REFUSED)]
    episode_return: float
    length: Count
    slot: int
    generation: Count
    plan_version: Count
    success: Share


class Events(Fields):
    """What happened in a step, counted over all envs."""

    num_begun: int
    num_ended: int
    num_unready: int
    """Envs that are `UNPREPARED` or `REFUSED`."""


class BatchArrays(NamedTuple):
    """What the envs of every game have in common; one entry per env unless noted otherwise."""

    resets_same_step: bool
    """Whether an env begins its next episode in the step that ends one."""
    episodes: Records[Episode]
    events: Records[Events]
    """One record."""
    dice: Dice
    seeds: Dice
    """What each env was seeded with."""
    rewards: Floats
    terminated: Flags
    truncated: Flags
    has_ended: Flags
    """Whether an episode ended in this step."""
    has_begun: Flags
    """Whether an episode began in this step."""
    block: Words
    """The plan; empty without a curriculum."""
    mails: Words
    """The mailboxes, of shape ``(num_envs, words)``; empty without a curriculum."""
    dials: Floats
    """The plan's dials at each env's draw; shape ``(num_envs, num_dials)``."""
    known: Words
    """Per slot: the generation whose task is in the game's table, or -1. Without a curriculum the
    table has a row per env, and this says whether a new task waits there.
    """
    pid: int
    """This process."""

    @staticmethod
    def zeros(num_envs: int) -> "BatchArrays":
        """Return the arrays of envs that were never reset, with random seeds."""
        seeds = np.random.SeedSequence().generate_state(2 * num_envs, np.uint32).view(np.uint64)
        return BatchArrays(
            False,
            Episode.zeros(num_envs),
            Events.zeros(),
            dice=seeds.copy(),
            seeds=seeds,
            rewards=np.zeros(num_envs),
            **{name: np.zeros(num_envs, dtype=np.bool_) for name in FLAGS},
            block=np.zeros(1, dtype=np.int64),
            mails=np.zeros((0, 1), dtype=np.int64),
            dials=np.zeros((num_envs, 0)),
            known=np.zeros(num_envs, dtype=np.int64),
            pid=os.getpid(),
        )

    def saved_arrays(self, num_slots: int) -> list[SavedArray]:
        """Describe what is kept of a batch in mid-flight.

        Args:
            num_slots: Slots of the curriculum; 1 without one.
        """
        # Slots are below 0 if nothing could be drawn.
        parts = Episode.parts({"slot": (NOT_ADMITTED, num_slots - 1)})
        plain = ("dice", "seeds", "rewards", *FLAGS)
        return [
            SavedArray("batch/episodes", np.asarray(self.episodes), parts),
            *(SavedArray(f"batch/{name}", getattr(self, name)) for name in plain),
        ]


@inlined
def goes_on(batch: BatchArrays, env_index: int) -> bool:
    """Clear an env's flags of the last step; return whether it plays, or else must begin."""
    batch.has_ended[env_index] = batch.has_begun[env_index] = False
    batch.terminated[env_index] = batch.truncated[env_index] = False
    batch.rewards[env_index] = 0.0
    return batch.episodes[env_index].state == PLAYING


@inlined
def count_step(batch: BatchArrays, env_index: int, reward: float) -> None:
    """Add one step to an env's episode."""
    batch.rewards[env_index] = reward
    batch.episodes[env_index].episode_return += reward
    batch.episodes[env_index].length += 1


@bare
def end_episode(batch: BatchArrays, env_index: int, success: float, is_terminated: bool) -> bool:
    """End an env's episode; with a curriculum, post a record.

    Returns:
        Whether the env is to begin its next episode in the same step.
    """
    episode = batch.episodes[env_index]
    episode.state = ENDED
    episode.success = success
    batch.has_ended[env_index] = True
    fetch_add(batch.events[0], "num_ended", 1)
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
            fetch_add(batch.events[0], "num_unready", 1)
    return batch.resets_same_step and episode.state == ENDED


@bare
def seed_episode(batch: BatchArrays, env_index: int, seed: int) -> None:
    """Seed an episode by itself, so that it is the same when it is replayed after a restore."""
    batch.dice[env_index] = mixed(batch.seeds[env_index] + np.uint64(seed) * GOLDEN)


@bare
def draw_task(batch: BatchArrays, env_index: int) -> int:
    """Draw what an env plays next; return the row of the table that holds it, or -1 for the same.

    The env can begin if its state is `PLAYING` afterwards. Without a curriculum it always can.
    """
    episode = batch.episodes[env_index]
    episode.episode_return = 0.0
    episode.length = 0
    episode.state = PLAYING
    batch.has_begun[env_index] = True
    fetch_add(batch.events[0], "num_begun", 1)
    if len(batch.mails) == 0:
        if batch.known[env_index] == 0:
            return -1
        batch.known[env_index] = 0
        return env_index
    slot, generation, _, version, seed, _, _, _ = mailbox.start(
        batch.block, batch.mails[env_index], env_index, batch.pid, batch.dials[env_index]
    )
    episode.slot, episode.generation, episode.plan_version = slot, generation, version
    if slot < 0:
        episode.state = REFUSED
    else:
        seed_episode(batch, env_index, seed)
        if batch.known[slot] == generation:
            return slot
        episode.state = UNPREPARED
    fetch_add(batch.events[0], "num_unready", 1)
    return -1


NUM_PLAYED = 6
"""Numbers that `note_played` writes per env."""


@bare
def note_played(
    has_ended: Flags,
    has_begun: Flags,
    episodes: Records[Episode],
    mails: Words,
    played: Words,
) -> int:
    """Write what has ended, then what has begun: with a curriculum, for infos.

    Args:
        has_ended: Flags of the batch.
        has_begun: Likewise.
        episodes: Of the batch.
        mails: Of the batch; not empty.
        played: Filled from the beginning: env, slot, generation, version of the plan, task,
            success (its bits).

    Returns:
        How many rows were written.
    """
    count = 0
    for are_begun in range(2):
        flags = has_begun if are_begun else has_ended
        for env_index in range(len(flags)):
            if flags[env_index]:
                episode = episodes[env_index]
                row = played[count]
                row[0] = env_index
                row[1], row[2] = episode.slot, episode.generation
                row[3] = episode.plan_version
                row[4] = mailbox.head_of(mails[env_index]).draw.task_id
                row.view(np.float64)[5] = episode.success
                count += 1
    return count
