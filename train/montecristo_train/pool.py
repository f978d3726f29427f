"""The opponents that a learner meets besides itself: its past selves and other agents."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from montecristo_env.agent import Agent, PublicView

PRIOR_GAMES = 2.0  # with which a win rate begins, half of them won
STILL_WINS = 2.0  # how much an opponent that wins more is favoured: the power of its win rate


@dataclass
class Opponent:
    """One member of the pool, and how it has done against the learner lately."""

    agent: Agent
    past_self: bool
    games: float = 0.0
    wins: float = 0.0

    @property
    def win_rate(self) -> float:
        """Its share of the wins among itself and the learner, cautiously."""
        return (self.wins + PRIOR_GAMES / 2) / (self.games + PRIOR_GAMES)


@dataclass
class Pool:
    """Past selves, of which only some are kept, and other agents, which stay.

    Args:
        past_share: the share of games with a past self at the table.
        opponents_share: the share of games with another agent.
        size: past selves that are kept; the one that wins least goes first.
        memory: after each rollout, results count less by this factor.
        guest: the past self that games meet which begin now, all the same one, so that few networks play at a time.
    """

    past_share: float
    opponents_share: float
    size: int = 20
    memory: float = 0.99
    members: list[Opponent] = field(default_factory=list)
    guest: int | None = None

    def draw(self, rng: np.random.Generator) -> int | None:
        """The place of an opponent for a new game, or None for a game of the learner with itself."""
        dice = rng.random()
        for past_self, share in ((True, self.past_share), (False, self.opponents_share)):
            if dice < share:
                if not past_self:
                    return self._draw_one(rng, past_self)
                if self.guest is None:
                    self.guest = self._draw_one(rng, past_self)
                return self.guest
            dice -= share
        return None

    def _draw_one(self, rng: np.random.Generator, past_self: bool) -> int | None:
        places = [place for place, member in enumerate(self.members) if member.past_self == past_self]
        if not places:
            return None
        weights = np.array([self.members[place].win_rate ** STILL_WINS for place in places])
        return int(rng.choice(places, p=weights / weights.sum()))

    def add_past_self(self, agent: Agent) -> int | None:
        """Takes in a past self; the place of the one that had to go for it, if any.

        Games that are being played against that one go on against the new one.
        """
        newcomer = Opponent(agent, past_self=True)
        past = [place for place, member in enumerate(self.members) if member.past_self]
        if len(past) < self.size:
            self.members.append(newcomer)
            return None
        weakest = min(past, key=lambda place: self.members[place].win_rate)
        self.members[weakest] = newcomer
        return weakest

    def act(self, games: PublicView, rows: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the members in these places do, one for each row."""
        choices = np.empty(rows.size, np.int64)
        for place in set(places.tolist()):
            theirs = places == place
            choices[theirs] = self.members[place].agent.act(games, rows[theirs])
        return choices

    def metrics(self) -> dict[str, float]:
        """How its members do against the learner."""
        found = {f"pool/{member.agent.name}": member.win_rate for member in self.members if not member.past_self}
        past = [member.win_rate for member in self.members if member.past_self]
        if past:
            found["pool/past_selves"] = float(np.mean(past))
        return found

    def count(self, place: int, share: float) -> None:
        """A game against this opponent has ended; it had this share of the win among the two."""
        self.members[place].games += 1
        self.members[place].wins += share

    def forget(self) -> None:
        """Lets old results fade, and the guest go: the learner has changed."""
        self.guest = None
        for member in self.members:
            member.games *= self.memory
            member.wins *= self.memory
