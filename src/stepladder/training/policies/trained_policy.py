"""A policy that was trained: it predicts, is saved, and is exported.

Made of what a checkpoint, a file or an agent says (`SavedPolicy`). What goes in is what an env
gives, of one env or of many; `observing` checks it.
"""

from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Space

from stepladder.agents.config import AgentConfig
from stepladder.agents.exporting import export, form_of
from stepladder.agents.history import History
from stepladder.agents.observations import on_device
from stepladder.agents.player import make_player
from stepladder.agents.saved_values import not_finite
from stepladder.agents.spaces import space_from_json
from stepladder.errors import ConfigError, SnapshotError, shown
from stepladder.training.checkpoints import SavedPolicy, read_policy
from stepladder.training.checkpoints.tensor_files import save_policy
from stepladder.training.policies.observing import batch_of

SUFFIX = ".safetensors"

State = tuple[npt.NDArray[Any], ...]
"""What a policy remembers: one array with a row per env."""


class TrainedPolicy:
    """What was learnt, ready to act.

    Get one from `stepladder.load_policy`, or as ``train(...).policy``.

    Args:
        saved: Its description and weights.
        device: Where it computes: "cpu", "cuda", "cuda:1", or "auto".
        seed: Of the actions that it draws.
        trust: Whether a network of a user that it names may be imported.

    Raises:
        ConfigError: The device does not exist.
        SnapshotError: Description and weights do not go together.
    """

    def __init__(
        self, saved: SavedPolicy, *, device: str = "cpu", seed: int = 0, trust: bool = False
    ):
        self._saved = saved
        self._policy = make_player(
            saved.description, saved.weights, 1, device=device, trust=trust
        ).policy
        self._policy.requires_grad_(False)
        self.observation_space: Space[Any] = space_from_json(saved.description["observation_space"])
        """Of one env."""
        self.action_space: Space[Any] = space_from_json(saved.description["action_space"])
        """Of one env."""
        self._layout = AgentConfig.from_json(saved.description["config"], "the agent").layout(
            self.observation_space
        )
        self._first = self._policy.first_memory(1)
        self._device = self._first.device
        self._generator = torch.Generator(self._device).manual_seed(seed)

    @property
    def agent(self) -> str:
        """Which agent has learnt it, such as PPO."""
        return str(self._saved.description.get("type"))

    @property
    def step(self) -> int | None:
        """Env steps of training when it was saved; None if that is not known."""
        return self._saved.step

    @property
    def run_folder(self) -> Path | None:
        """The run that it comes from; None if it comes from a file by itself."""
        return self._saved.run_folder

    @property
    def is_recurrent(self) -> bool:
        """Whether it remembers what it has seen; `predict` then needs its state back."""
        return self._first.numel() > 0 or self._layout.frame_stack > 1

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step {self.step:,}"
        place = "" if self.run_folder is None else f", {self.run_folder}"
        return f"{type(self).__name__}({self.agent}{step}{place})"

    @torch.inference_mode()
    def predict(
        self,
        observation: Any,
        state: State | None = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[npt.NDArray[Any], State | None]:
        """Choose an action for one env, or for each of many, as Stable-Baselines3's `predict` does.

        Args:
            observation: Of one env, or with a row per env; a dict where the env's is one.
            state: What the last call returned, for a policy that remembers; None begins episodes.
            episode_start: Whether an episode begins with this observation, for each env: what was
                remembered of the one before is forgotten. None is in no env.
            deterministic: Whether to take the best action rather than draw one.

        Returns:
            The action, or one for each env; and the state for the next call, None for a policy that
            remembers nothing.

        Raises:
            ConfigError: The observation is not one of the env's, or the state does not fit it.
        """
        batch, num_rows, is_single = batch_of(self.observation_space, observation)
        memory, history = self._remembered(state, episode_start, num_rows)
        packed = history.pack(batch)
        seen = on_device(packed, self._device)
        actions, memory = self._policy.act(seen, memory, self._generator, deterministic)
        history.advance(packed, np.ones(num_rows, dtype=np.bool_))
        after = tuple(self._state(memory, history).values()) if self.is_recurrent else None
        return (actions[0] if is_single else actions), after

    def _state(self, memory: torch.Tensor, history: History) -> dict[str, npt.NDArray[Any]]:
        """Return what is remembered, by name; past frames where several are seen at once."""
        found = {"memory": memory.cpu().numpy()}
        if self._layout.frame_stack > 1:
            found["numbers"], found["codes"] = history.past()
        return found

    def _remembered(
        self, state: State | None, episode_start: Any, num_rows: int
    ) -> tuple[torch.Tensor, History]:
        """Return the memory and the past frames that the next step begins with."""
        memory, history = self._policy.first_memory(num_rows), History(self._layout, num_rows)
        if state is None or not self.is_recurrent:
            return memory, history
        wanted = self._state(memory, history)
        given = state if isinstance(state, tuple) and len(state) == len(wanted) else ()
        found = {name: np.asarray(one) for name, one in zip(wanted, given, strict=False)}
        shapes, expected = ([list(one.shape) for one in part.values()] for part in (found, wanted))
        if shapes != expected:
            raise ConfigError(
                f"the state of {num_rows} envs is a tuple of arrays of shapes {expected}; got "
                f"{shapes or shown(state)}. Pass what the last predict returned, or None at the "
                "start."
            )
        memory = torch.tensor(found["memory"], dtype=memory.dtype, device=self._device)
        place = not_finite(memory)
        if place is not None:
            raise ConfigError(
                f"the state is not finite at {place}. Pass what the last predict returned, or None "
                "at the start."
            )
        begins = np.zeros(num_rows, dtype=np.bool_)
        if episode_start is not None:
            begins = np.asarray(episode_start, dtype=np.bool_).reshape(-1)
        if begins.shape != (num_rows,):
            raise ConfigError(
                f"episode_start has {len(begins)} entries; expected {num_rows}, one for each env."
            )
        try:
            if self._layout.frame_stack > 1:
                history.continue_from(found["numbers"], found["codes"], begins)
        except SnapshotError as error:
            raise ConfigError(f"the state does not fit: {error} Pass the last one.") from error
        memory[torch.from_numpy(begins).to(self._device)] = 0
        return memory, history

    def save(self, path: str | PathLike[str]) -> Path:
        """Write it to one file: the weights, and the description as JSON. Nothing in it is pickle.

        Commands take such a file where they take a run (``stepladder watch ENV --policy FILE``).

        Args:
            path: The file, which is replaced if there is one; ``.safetensors`` is added to a name
                without an ending.

        Returns:
            The file.

        Raises:
            ConfigError: The name ends in something else.
            OSError: It cannot be written.
        """
        target = _file_of(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        save_policy(target, self._saved.description, self._saved.weights)
        return target

    @classmethod
    def load(
        cls, path: str | PathLike[str], *, device: str = "cpu", seed: int = 0
    ) -> "TrainedPolicy":
        """Read what `save` has written; see `stepladder.load_policy` for runs and checkpoints.

        Raises:
            ConfigError: The name ends in something else, or the device does not exist.
            SnapshotError: There is no such file, or it is damaged.
        """
        return cls(read_policy(_file_of(path)), device=device, seed=seed)

    def export(
        self,
        path: str | PathLike[str],
        format: Literal["torchscript", "onnx"] | None = None,
    ) -> Path:
        """Write it as a graph for programs without this library.

        The graph takes observations as the env gives them, with a row per env, and returns the best
        action of each; all that is in between is inside. A dict is passed as its parts, in the
        order of its space. A policy that remembers takes its memory (zeros at the start) and
        whether an episode begins as well, and returns its next memory. ``stepladder.json`` in
        the file names all of them.

        Args:
            path: The file, which is replaced if there is one.
            format: ``"torchscript"`` or ``"onnx"``; by default what the name ends in: ``.pt``,
                ``.ts`` or ``.onnx``.

        Returns:
            The file.

        Raises:
            ConfigError: A package is missing, the name says nothing, or this kind of policy cannot
                be exported.
            OSError: It cannot be written.
        """
        target = Path(path)
        form = form_of(target, format)
        target.parent.mkdir(parents=True, exist_ok=True)
        # A copy on the CPU, which is the same everywhere.
        copied = make_player(self._saved.description, self._saved.weights, 1).policy
        export(copied.requires_grad_(False), self._layout, target, form)
        return target


def _file_of(path: str | PathLike[str]) -> Path:
    target = Path(path)
    if not target.suffix:
        return target.with_suffix(SUFFIX)
    if target.suffix != SUFFIX:
        raise ConfigError(
            f"a policy is kept in a file that ends in {SUFFIX}; got {str(target)!r}. Rename it, or "
            "use export for TorchScript (.pt) and ONNX (.onnx)."
        )
    return target
