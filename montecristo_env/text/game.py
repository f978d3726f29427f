"""One game, turn by turn, in words."""

from collections.abc import Sequence

import numpy as np

from montecristo_env.agent import Agent, PublicView, make_agent
from montecristo_env.core import actions
from montecristo_env.core.actions import Action
from montecristo_env.core.constants import NONE
from montecristo_env.errors import InvalidArgument
from montecristo_env.games import GameBatch
from montecristo_env.render.words import sentence
from montecristo_env.ruleset import RulesetLike
from montecristo_env.text.moves import NAMES, list_moves, parse_move
from montecristo_env.text.position import describe

MOST_NEWS = 30
"""Moves of others that a prompt tells at most, the last ones."""


def prompt(games: GameBatch | PublicView, game: int = 0, *, long: bool = False) -> str:
    """What a model is asked that must decide now: the position, the legal moves, and how to answer."""
    moves = list_moves(games, game, long=long)
    return "\n".join(
        [
            describe(games, game, long=long),
            f"Your legal moves:\n{moves}" if long else f"Legal moves: {moves}",
            "Answer with one of these moves, as it is written there.",
        ]
    )


class TextGame:
    """A game that is played by texts; what the environments of other projects stand on.

    Args:
        num_players: 2, 3 or 4.
        seed: see `GameBatch`: same seed, same game.
        ruleset: see `GameBatch`.
        reward: see `GameBatch`.
        long: whether prompts have the long form.
        opponents: agents, by name or as objects, that play all seats but one, clockwise from it; with none, whoever
            uses this plays all seats.
        seat: which seat is left to play when there are opponents.
    """

    def __init__(
        self,
        num_players: int = 2,
        seed: int | None = None,
        *,
        ruleset: RulesetLike = None,
        reward: str = "win",
        long: bool = False,
        opponents: Sequence[str | Agent] = (),
        seat: int = 0,
    ) -> None:
        self.games = GameBatch(1, num_players, seed=seed, ruleset=ruleset, reward=reward, threads=1)
        self.long = long
        if isinstance(opponents, str) or (opponents and len(opponents) != num_players - 1):
            raise InvalidArgument(f"opponents must be none or {num_players - 1} agents, but are {opponents!r}")
        if isinstance(seat, bool) or not isinstance(seat, int) or not 0 <= seat < num_players:
            raise InvalidArgument(f"seat must be a whole number from 0 to {num_players - 1}, but is {seat!r}")
        self._agents = {
            (seat + place) % num_players: make_agent(agent) for place, agent in enumerate(opponents, start=1)
        }
        self._log: list[tuple[int, Action]] = []
        self._read = [0] * num_players  # how much of the log each seat knows
        self._let_agents_play()

    @property
    def num_players(self) -> int:
        """How many play."""
        return int(self.games.num_players[0])

    @property
    def over(self) -> bool:
        """Whether the game is over."""
        return bool(self.games.over[0])

    @property
    def current_player(self) -> int:
        """The seat that must decide, -1 when the game is over."""
        return int(self.games.current_player[0])

    @property
    def legal_moves(self) -> list[str]:
        """What may be played now, in notation."""
        return [str(action) for action in self.games.legal_actions(0)]

    @property
    def scores(self) -> list[int]:
        """Points by seat."""
        scores: list[int] = self.games.scores[0, : self.num_players].tolist()
        return scores

    @property
    def rewards(self) -> list[float]:
        """Rewards by seat: all 0 until the game is over."""
        rewards: list[float] = self.games.rewards[0, : self.num_players].tolist()
        return rewards

    @property
    def outcome(self) -> str:
        """Whose decision it is and what is asked, or who has won."""
        return sentence(self.games.public_state(0), NAMES)

    def prompt(self) -> str:
        """What the decider needs to know: others' moves since their last one, the position, and the legal moves."""
        if self.over:
            return f"The game is over: {self.outcome}."
        seat = self.current_player
        log = [(who, move) for who, move in self._log[self._read[seat] :] if who != seat]
        dots = ["..."] if len(log) > MOST_NEWS else []
        news = [*dots, *(f"{NAMES[who]} {move}" for who, move in log[-MOST_NEWS:])]
        told = f"Since your last move: {', '.join(news)}.\n" if news else ""
        return told + prompt(self.games, long=self.long)

    def play(self, answer: str) -> Action:
        """Makes the move that an answer names, and those of the opponents that follow; see `parse_move`.

        A bad answer raises `InvalidNotation` or `IllegalAction`, and nothing changes.
        """
        action = parse_move(answer, self.games.legal_actions(0))
        self._read[self.current_player] = len(self._log)
        self._step(actions.encode(action))
        self._let_agents_play()
        return action

    def forfeit(self, seat: int) -> list[float]:
        """The rewards when somebody gives no legal answer: -1 for them, and the others share 1. The game stays."""
        others = 1 / (self.num_players - 1)
        return [-1.0 if other == seat else others for other in range(self.num_players)]

    def _step(self, code: int) -> None:
        self._log.append((self.current_player, actions.decode(code)))
        self.games.step([code])

    def _let_agents_play(self) -> None:
        view = PublicView(self.games)
        while (seat := self.current_player) != NONE and seat in self._agents:
            self._step(int(self._agents[seat].act(view, np.arange(1))[0]))
