"""``stepladder play``: a game by hand, in a window, against a policy where the game is for two."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, cast

import tyro
from gymnasium.spaces import Dict

from stepladder.cli.inputs.finding import learning
from stepladder.cli.inputs.parsing import parse
from stepladder.cli.inputs.playable import Playable, make_env, pretrained_games
from stepladder.cli.output import console
from stepladder.cli.output.playing import LAST_PICTURE_S, PlayCounts, Shutter, play
from stepladder.configs.checks import NotNegativeInteger, Positive, PositiveInteger, Within
from stepladder.configs.codec import Config
from stepladder.errors import ConfigError
from stepladder.games.drawing.canvas import resized
from stepladder.games.drawing.packages import keeping_signals
from stepladder.games.drawing.window import Window, require_screen
from stepladder.games.game import PLAYERS, Game
from stepladder.games.registry import GAMES
from stepladder.training.pretrained import Pretrained, find_pretrained, pretrained_names

POLICY = "policy"
"""The opponent that comes with the package."""


@dataclass(frozen=True, kw_only=True)
class PlayArguments(Config):
    """Play a game by hand, in a window.

    A game for two is played against a policy, one with levels in those that no policy was trained
    on. Escape or closing the window ends it.
    """

    game: tyro.conf.Positional[str]
    """Name of a game that comes with a trained policy; any other word lists them."""

    against: str = POLICY
    """In a game for two: policy, the one that comes with the package; weak or strong, its scripted
    players; or the folder of a run, a checkpoint or a file of weights."""

    episodes: PositiveInteger | None = None
    """Number of games. By default it goes on until the window is closed."""

    seed: NotNegativeInteger = 0
    """Seed of the first game; each further one has the next number."""

    speed: Annotated[Positive, Within(0.1, 4.0)] = 1.0
    """How quickly time passes; 0.5 is half as quick."""

    scale: Positive = 1.0
    """Factor by which pictures are enlarged."""

    trust: bool = False
    """Allow imports of modules that the opponent's run names, which runs their code."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(PlayArguments, argv, "play")
    require_screen()
    pretrained = find_pretrained(arguments.game)
    game = GAMES[pretrained.config.env]
    if not game.keys:
        raise ConfigError(
            f"{arguments.game} has no keys, so it cannot be played by hand. Play "
            f"{' or '.join(n for n in pretrained_names() if _of(n).keys)}."
        )
    if arguments.against != POLICY and not game.opponents:
        raise ConfigError(
            f"{arguments.game} is for one player, so nobody plays against you. Leave --against out."
        )
    with keeping_signals():
        playable = _playable(pretrained, game, arguments)
        with closing(playable.env):
            console.say(_played(playable, game, arguments))
    return 0


def _of(name: str) -> Game:
    return GAMES[find_pretrained(name).config.env]


def _playable(pretrained: Pretrained, game: Game, arguments: PlayArguments) -> Playable:
    """Return the env, in which the caller plays both players where a policy is the other one."""
    if not game.opponents:
        return pretrained_games(pretrained, ())
    env = pretrained.config.env
    if arguments.against in game.opponents:
        return Playable(name=pretrained.name, env=make_env(env, {"opponent": arguments.against}))
    return Playable(
        name=pretrained.name, env=make_env(env, {"players": "both"}), pretrained=pretrained
    )


class ByHand:
    """A policy that does what the keys say, and lets another one play the other player.

    Args:
        game: Knows what keys mean.
        held: Returns the keys that are held down.
        other: Plays player two; None if nobody does, or the game itself.
        deterministic: Whether it takes its best actions.
    """

    def __init__(
        self,
        game: Game,
        held: Callable[[], set[str]],
        other: Any = None,
        deterministic: bool = False,
    ):
        self._game, self._held = game, held
        self._other, self._deterministic = other, deterministic

    def begin(self) -> None:
        """Begin an episode."""
        if self._other is not None:
            self._other.begin()

    def __call__(self, observation: Any) -> Any:
        """Return the action for an observation."""
        own = self._game.action_of_keys(self._held())
        if self._other is None:
            return own
        seen = observation[PLAYERS[1]][None]
        (action,) = self._other.act_batch(seen, deterministic=self._deterministic)
        return dict(zip(PLAYERS, (own, action), strict=True))


def _by_hand(
    playable: Playable, game: Game, held: Callable[[], set[str]], arguments: PlayArguments
) -> ByHand:
    """Return who plays: the user, and the policy that plays player two, if one does."""
    spaces = (playable.env.observation_space, playable.env.action_space)
    if not all(isinstance(space, Dict) for space in spaces):
        return ByHand(game, held)
    seen, done = (cast("Dict", space)[PLAYERS[1]] for space in spaces)
    learnt = learning()
    if arguments.against == POLICY:
        found = learnt.pretrained_learnt(playable.pretrained)
    else:
        found = learnt.find_learnt(arguments.against, trust=arguments.trust)
    # One who plays by hand has forces; a policy with numbered actions is translated.
    translator = game.translator(found.num_choices, done)
    found.require_fit(playable.name, seen, None if translator else done)
    other = found.player(1, seed=arguments.seed)
    return ByHand(game, held, translator(other) if translator else other, found.own_way == "best")


def _played(playable: Playable, game: Game, arguments: PlayArguments) -> str:
    """Play until the window is closed or the games are over; return how it went, in one line."""
    rate = float(playable.env.metadata["render_fps"]) * arguments.speed
    counts = PlayCounts()
    keys = "; ".join(f"{key}: {what}" for key, what in game.keys.items())
    console.say(f"{keys}; Escape: the end")
    with closing(Window(f"{playable.name} - {keys}", rate)) as window:
        hand = _by_hand(playable, game, lambda: window.held, arguments)
        seeds = count(arguments.seed)
        while window.is_open and (
            arguments.episodes is None or counts.num_episodes < arguments.episodes
        ):
            pictures = play(
                playable,
                hand,
                num_episodes=1,
                max_steps=100_000,
                seed=next(seeds),
                shutter=Shutter(rate, rate),
                end_pictures=round(2 * LAST_PICTURE_S * rate),
                counts=counts,
            )
            for picture in pictures:
                window.show(resized(picture, arguments.scale))
                if not window.is_open:
                    break
    games = f"{counts.num_episodes} game{'' if counts.num_episodes == 1 else 's'}"
    against = f" against {arguments.against}" if game.opponents else ""
    return f"you won {counts.num_successes} of {games}{against}"
