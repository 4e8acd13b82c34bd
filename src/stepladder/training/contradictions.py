"""Settings of a training that are right by themselves and do not go together.

Asked by `config` after all else was checked. What an env or a curriculum would refuse later is
found here first, before anything is started; what only a game can know, the game says
(`Game.check`).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.phased.settings import Mixed
from stepladder.errors import ConfigError, TaskError
from stepladder.games.game import CALLED, Game

if TYPE_CHECKING:
    from stepladder.training.config import TrainingConfig


def contradictions(
    config: "TrainingConfig", game: Game | None, labels: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each.

    Args:
        config: The settings.
        game: What is known about the env; None if that needs an import that is not allowed
            yet, and then only what holds for any env is checked.
        labels: Of what is practised; none if they are not known either.
    """
    if game is not None:
        yield from _about_game(config, game)
    if labels:
        for path, text in config.curriculum.about_labels(labels):
            yield f"curriculum.{path}", text
        yield from _about_edits(config)
    yield from _about_phases(config)
    yield from _about_scores(config)
    yield from _about_opponents(config, game)
    yield from _about_single_envs(config, game)


def neural_opponents(config: "TrainingConfig") -> tuple[str, ...]:
    """Return the opponents that the training plays itself, each once, "caller:" included."""
    found = (name for _, name in _opponents(config) if str(name).startswith(CALLED))
    return tuple(dict.fromkeys(found))


def _about_game(config: "TrainingConfig", game: Game) -> Iterator[tuple[str, str]]:
    yield from game.check(config)
    if getattr(config.agent, "mirror", False) and game.symmetry(config.env_kwargs) is None:
        yield "agent.mirror", f"{config.env} has no symmetry. Leave it out."
    if not game.opponents:
        return
    for opponent in config.evaluation.opponents:
        if not opponent.startswith(CALLED) and opponent not in game.opponents:
            yield (
                "evaluation.opponents",
                f"must be of {', '.join(game.opponents)}, or '{CALLED}' and a file; got "
                f"{opponent!r}. Correct the name.",
            )


def _about_phases(config: "TrainingConfig") -> Iterator[tuple[str, str]]:
    names = [phase.name for phase in config.curriculum.all_phases()]
    for name in config.clear_buffer_on:
        if name not in names:
            known = f"the phases are {', '.join(names)}" if names else "the curriculum has none"
            yield f"clear_buffer_on.{name}", f"there is no such phase; {known}."


def _about_edits(config: "TrainingConfig") -> Iterator[tuple[str, str]]:
    """Refuse curricula that edit tasks, where the tasks cannot be edited."""
    if not config.curriculum.num_edit_changes:
        return
    try:
        config.curriculum.editable(config.task_source())
    except ConfigError as error:
        yield "curriculum.editing", str(error)
    except TaskError:
        # Something is wrong with the tasks themselves, which is reported elsewhere.
        return


def _about_scores(config: "TrainingConfig") -> Iterator[tuple[str, str]]:
    """Refuse curricula that learn from advantages, with an agent that has none."""
    if config.agent.gives_advantages:
        return
    for path, curriculum in _curricula(config.curriculum, "curriculum"):
        if curriculum.trainer_score:
            yield (
                f"{path}.scored_by",
                f"{getattr(curriculum, 'scored_by', curriculum.trainer_score)!r} needs an agent "
                f"that gives advantages, such as PPO; {config.agent.kind} gives none. Set it to "
                "'deviation', or train with PPO.",
            )


def _curricula(curriculum: CurriculumConfig, path: str) -> Iterator[tuple[str, CurriculumConfig]]:
    """Yield a curriculum and all in its phases, each with its path."""
    yield path, curriculum
    for index, phase in enumerate(curriculum.all_phases()):
        yield from _curricula(phase.inner(), f"{path}.phases[{index}].curriculum")


def _about_opponents(config: "TrainingConfig", game: Game | None) -> Iterator[tuple[str, str]]:
    needs_both, has_none = False, game is not None and not game.opponents
    for path, name in _opponents(config):
        if name == "caller":
            yield path, 'says "caller" and not who; write "caller:newest" or "caller:pool".'
        elif isinstance(name, str) and name.startswith(CALLED):
            needs_both = True
            if has_none:
                yield path, f"{name!r} needs a game for two players; {config.env!r} has one."
    archive = f"{CALLED}archive"
    if archive in neural_opponents(config) and config.opponents.archive is None:
        yield "opponents.archive", f"is missing, and {archive!r} is an opponent. Name its folder."
    if config.opponents.archive is not None and has_none:
        yield (
            "opponents.archive",
            f"opponents need a game for two players; {config.env!r} has one. Leave it out.",
        )
    if needs_both and config.env_kwargs.get("players") != "both":
        yield "env_kwargs.players", 'must be "both", because there are neural opponents.'


def _about_single_envs(config: "TrainingConfig", game: Game | None) -> Iterator[tuple[str, str]]:
    """Refuse settings of single envs that contradict each other, or that would have no effect."""
    if config.success_key is not None and config.return_threshold is not None:
        text = "is given beside success_key; success is read from one of them. Leave one out."
        yield "return_threshold", text
    if game is None:
        return
    has_tasks = bool(config.tasks) or type(game).source is not Game.source
    if config.deliver != "auto" and not has_tasks:
        yield "deliver", f"{config.deliver!r} is for tasks, and there are none. Give tasks."
    settings = (config.wrappers, config.deliver != "auto", config.success_key is not None)
    settings += (config.return_threshold is not None, config.missing_success_is_failure)
    if game.opponents and config.env_kwargs.get("players") == "both" and any(settings):
        yield (
            "env_kwargs.players",
            '"both" is for games that are stepped as a batch, without wrappers, deliver, '
            "success_key, return_threshold and missing_success_is_failure. Leave these out.",
        )


def _opponents(config: "TrainingConfig") -> Iterator[tuple[str, Any]]:
    """Yield the path and the name of every opponent that is mentioned."""
    if "opponent" in config.env_kwargs:
        yield "env_kwargs.opponent", config.env_kwargs["opponent"]
    for index, task in enumerate(config.listed_tasks):
        if "opponent" in task.params:
            yield f"tasks[{index}].params.opponent", task.params["opponent"]
    yield from _in_phases(config.curriculum, "curriculum")


def _in_phases(curriculum: CurriculumConfig, path: str) -> Iterator[tuple[str, Any]]:
    for index, phase in enumerate(curriculum.all_phases()):
        where = f"{path}.phases[{index}]"
        setting = phase.settings.get("opponent")
        names = setting.values if isinstance(setting, Mixed) else (setting,)
        for name in names:
            if name is not None:
                yield f"{where}.settings.opponent", name
        yield from _in_phases(phase.inner(), f"{where}.curriculum")
