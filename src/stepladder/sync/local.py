"""Host and clients in one process: ordinary memory, no waiting.

The reference that the other backends are tested against. Records wait in their mailboxes until
`collect`, as they would in another process, so a run does the same here and there.
"""

import numpy as np

from stepladder.arrays import Words
from stepladder.errors import WrongProcessError
from stepladder.sync.client import Client
from stepladder.sync.host import Host
from stepladder.sync.process import current_pid

STAY = "a local client cannot leave its process. Use SharedHost for envs in other processes."


class LocalHost(Host):
    """The curriculum's side, for envs in the same process."""

    reaches_processes = False

    def _make_mails(self, num_words: int) -> Words:
        return np.zeros((self.num_envs, num_words), dtype=np.int64)

    def client(self, env_index: int) -> "LocalClient":
        """Return the client of one env."""
        self._check_env_index(env_index)
        return LocalClient(self, env_index)


class LocalClient(Client):
    """The env's side, in the same process."""

    def __init__(self, host: LocalHost, env_index: int):
        super().__init__(host.curriculum, env_index, current_pid())
        self._host = host

    def _connect(self) -> tuple[Words, Words]:
        return self._host.curriculum.plan.block, self._host.mails.words[self.env_index]

    def _sign_in(self) -> None:
        if self.host_pid != current_pid():
            raise WrongProcessError(f"a fork has left this local client behind; {STAY}")
        super()._sign_in()

    def __getstate__(self) -> dict[str, object]:
        raise TypeError(STAY)
