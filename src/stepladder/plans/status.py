"""The one set of status values: what kernels return, and what an env is doing.

A kernel returns something of use (a slot, the index of an impossible record) or one of the values
below 0. The values from 0 on are the states of an env, in a game's kernels and in workers alike.
"""

DONE = -1
"""All of it was done, and nothing follows."""

TO_REPLACE = -2
"""All of it was done, and tasks that have been noted are to be replaced."""

STAGE_DUE = -3
"""Stopped after a record that moves the curriculum to another stage."""

BEING_WRITTEN = -4
"""Nothing was read: the plan's writer is busy or dead."""

NOTHING_ACTIVE = -5
"""Nothing was drawn: every task is quarantined."""

NOT_ADMITTED = -6
"""Nothing was drawn: the mailbox is closed, or belongs to another process."""

NO_ROOM = -7
"""Nothing was posted: the mailbox is full or closed."""

NEVER_BEGAN = -8
"""Nothing was posted: no episode is in flight."""

# States of an env.

NEVER_RESET = 0
"""Waits for its first reset."""

PLAYING = 1
"""In an episode."""

ENDED = 2
"""Waits for its reset after an episode."""

UNPREPARED = 3
"""Drew a task whose level or settings are not packed yet; handled before the step returns."""

REFUSED = 4
"""Could not draw or report; handled before the step returns."""

LOST = 5
"""In an episode whose worker has died."""
