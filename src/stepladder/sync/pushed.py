"""Host and clients that share no memory: the whole plan travels, and every env says it has it.

For vector envs whose processes may run anywhere. All a host needs is a way to call a method of
every env's client: ``curriculum_call`` of `CurriculumEnv` through the vector env (`env_method` of
Stable-Baselines3, `call` of Gymnasium). A push carries weights, stage
and mixing ratio together under one version; each env answers with the version it now has, and
anything but agreement raises. Records stay with the client until the host has acknowledged them,
so a lost answer loses none and counts none twice.

A push costs a round trip to every env and the size of the plan; where memory can be shared,
`shared` is faster by orders of magnitude.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Flags, Words
from stepladder.curricula.base import Curriculum
from stepladder.errors import AgreementError
from stepladder.plans.plan import header_record
from stepladder.plans.record import UNBUILDABLE
from stepladder.sync import mailbox, taking
from stepladder.sync.client import Client
from stepladder.sync.host import CallAll, Host


class PushedHost(Host):
    """The curriculum's side, for envs that can only be called.

    Args:
        curriculum: The curriculum.
        num_envs: Number of envs.
        call: Calls ``push(…)`` or ``pull(…)`` on the client of every env.
        max_failed_share: Share of draws that may turn out unbuildable before `collect` raises.
    """

    def __init__(
        self,
        curriculum: Curriculum,
        num_envs: int,
        call: CallAll | None = None,
        *,
        max_failed_share: float = 0.5,
    ):
        self.call = call
        """Set once the envs are connected; until then nothing is pushed."""
        self._pushed_version = -1
        super().__init__(curriculum, num_envs, max_failed_share=max_failed_share)

    collects_without_envs = False

    def use_calls(self, call: CallAll | None) -> None:
        """Push the plan by this call, and again whenever it changes; None stops that."""
        self.call = call
        if call is not None:
            self.push()

    def _make_mails(self, num_words: int) -> Words:
        return np.zeros((self.num_envs, num_words), dtype=np.int64)

    def client(self, env_index: int) -> "PushedClient":
        """Return the client of one env, with the plan as it is now; it can be pickled."""
        self._check_env_index(env_index)
        return PushedClient(self.curriculum, env_index, self.mails.words[env_index].copy())

    def _ask(self, method: str, *args: Any) -> list[Any]:
        """Call a method on every env; return one answer per env."""
        if self.call is None:
            raise AgreementError(
                "this host cannot reach its envs yet. Give it a way to call their clients: "
                "host.use_calls(…)."
            )
        answers = list(self.call(method, *args))
        if len(answers) != self.num_envs:
            raise AgreementError(
                f"{method} was answered by {len(answers)} envs and this channel has "
                f"{self.num_envs}. host.call must call every env."
            )
        return answers

    def _take(self, ended: bool, rows: Words | Flags | None, tick: int) -> int:
        if self.call is None or not ended:
            return 0
        taken = self.mails.heads["taken"].tolist()
        count, unbuildable = 0, 0
        # Whether or not the plan changes: from the next draw on, the envs have all of it. They keep
        # their records until a later call says that these were taken.
        for env_index, mail in enumerate(self._ask("pull", taken, tick)):
            self.mails.words[env_index] = mail
            for number in range(taken[env_index], int(self.mails.heads["posted"][env_index])):
                record: Any = self.mails.rings[env_index, number % mailbox.CAPACITY]
                self._records[count] = record
                unbuildable += int(record["outcome"] == UNBUILDABLE)
                count += 1
        if not count:
            # Nothing was found, so the tick stays as it was.
            self._ask("pull", taken, tick - 1)
            return 0
        self._begin_collection()
        taking.admit(
            *(self.mails.words, self._records, count, unbuildable),
            *(tick, self._last_tick, self._lags, self._taken),
        )
        return count

    def _spread(self) -> None:
        if self.call is not None and self.curriculum.plan.version != self._pushed_version:
            self.push()

    def push(self, mails: Words | None = None) -> None:
        """Send the plan to every env and check that all have it.

        Args:
            mails: Mailboxes that the envs take over too, with or without their rings; only after
                a restore and at the end.

        Raises:
            AgreementError: An env answered with another version.
        """
        plan = self.curriculum.plan
        taken = self.mails.heads["taken"].tolist()
        answers = self._ask("push", np.array(plan.block), taken, mails)
        require_agreement(plan.version, answers)
        self._pushed_version = plan.version

    def find_dead(self) -> list[int]:
        """Return nothing: a process elsewhere cannot be looked at. Ask the vector env."""
        return []

    def _spread_restored(self) -> None:
        self._pushed_version = -1
        if self.call is not None:
            self.push(self.mails.without_empty_rings())

    def _free(self) -> None:
        self.mails.heads["closed"] = 1
        if self.call is not None:
            self.push(self.mails.without_empty_rings())


def require_agreement(version: int, answers: list[Any]) -> None:
    """Raise unless every env answered with the host's version."""
    wrong = [(index, answer) for index, answer in enumerate(answers) if answer != version]
    if wrong:
        index, answer = wrong[0]
        raise AgreementError(
            f"env {index} has plan version {answer} and the host has {version} ({len(wrong)} of "
            f"{len(answers)} envs disagree). Every env must be wrapped in its own CurriculumEnv."
        )


class PushedClient(Client):
    """The env's side: keeps the last plan it was sent, and its own mailbox."""

    def __init__(self, curriculum: Curriculum, env_index: int, mail: Words):
        super().__init__(curriculum, env_index, host_pid=0)
        self._own_block: Words = np.array(curriculum.plan.block)
        self._own_mail: Words = mail

    def _connect(self) -> tuple[Words, Words]:
        return self._own_block, self._own_mail

    def push(
        self,
        block: npt.NDArray[np.int64],
        taken: list[int],
        mails: npt.NDArray[np.int64] | None,
    ) -> int:
        """Take over a plan; return its version as seen from here."""
        self._own_block = np.array(block)
        self._block = None
        if mails is not None:
            self._own_mail[: mails.shape[1]] = mails[self.env_index]
        taking.set_taken(self._own_mail, taken[self.env_index])
        return self.plan_version()

    def pull(self, taken: list[int], tick: int) -> Words:
        """Return the mailbox with everything the host has not taken yet."""
        header_record(self._own_block)["tick"] = tick
        taking.set_taken(self._own_mail, taken[self.env_index])
        return self._own_mail

    def _can_wait(self) -> bool:
        return False

    def _check_host(self) -> None:
        # A host in another place cannot be looked at; the vector env notices when it is dead.
        return
