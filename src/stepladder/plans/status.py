"""What compiled code answers where it cannot answer with a number of its own.

A kernel returns something of use (a slot, the index of an impossible record) or one of these,
which are all below 0. There is one set for draws, posts and updates.
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
