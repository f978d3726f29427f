"""The game for OpenSpiel: importing this module registers `python_montecristo`.

```python
import pyspiel
import montecristo_env.openspiel

game = pyspiel.load_game("python_montecristo(players=3,refill=short)")
```

Chance is explicit. It is asked for the setup and for every card and token that is turned up, one by one, and nowhere
else; an outcome says what is turned up (15 sorts at most, 24 orders of marbles), and its probability is exact. What
nobody has seen, the order of pile and bag and what wild bags are, is not decided before it shows. So all that there is
of a state is known to all players, and OpenSpiel's algorithms for games of perfect information apply.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from montecristo_env.agent import Agent, PublicView, make_agent
from montecristo_env.core import actions, batch, chance_nodes, observation
from montecristo_env.core.actions import DUNGEON_LETTERS, KIND_LETTERS
from montecristo_env.core.chance_nodes import LANE_ORDERS, OUTCOMES, Draw
from montecristo_env.core.constants import (
    BONUS_POINTS,
    COLOURS,
    DUNGEONS,
    HAND_LIMIT,
    KINDS,
    LANES,
    MAX_PLAYERS,
    MIN_PLAYERS,
    MOST_POINTS_A_ROUND,
    NONE,
    PLACEMENTS_ACTIVE,
    REINFORCEMENTS,
    TOKENS_DRAWN,
    TREASURE_PLACES,
    Decision,
    Lane,
)
from montecristo_env.core.layout import OFFSET, STATE, States
from montecristo_env.core.public import card, token
from montecristo_env.core.scoring import REWARDS
from montecristo_env.errors import IllegalAction, InvalidArgument
from montecristo_env.games import GameBatch, seed_of_game
from montecristo_env.ruleset import Ruleset
from montecristo_env.text import describe
from montecristo_env.util.commands import missing

try:
    import pyspiel
except ImportError as error:
    raise missing("this", error.name, "openspiel") from error

SHORT_NAME = "python_montecristo"


# --- settings as parameters of the game


def _as_parameter(value: Any) -> Any:
    """A setting as OpenSpiel takes it: numbers and words as they are, tuples as "3:2:1" or "2:2:2/2:2:2"."""
    if not isinstance(value, tuple):
        return value
    nested = isinstance(value[0], tuple)
    return ("/" if nested else ":").join(str(_as_parameter(item)) for item in value)


def _as_setting(name: str, value: Any) -> Any:
    """The inverse; what cannot be read is left to the rule set, which says what is wrong."""
    default = _RULES[name]
    if not isinstance(default, tuple) or not isinstance(value, str):
        return value
    try:
        rows = [[int(number) for number in row.split(":")] for row in value.split("/")]
    except ValueError:
        example = _as_parameter(default)
        raise InvalidArgument(f"{name} must be numbers like {example}, but is {value!r}") from None
    return rows if isinstance(default[0], tuple) else rows[0]


_RULES = {name: getattr(Ruleset, name) for name in Ruleset.__dataclass_fields__}
PARAMETERS = {
    "players": MIN_PLAYERS,
    "reward": REWARDS[0],
    **{name: _as_parameter(value) for name, value in _RULES.items()},
}
"""The parameters of the game with their defaults: those of `GameBatch`, and the settings of `Ruleset`."""

GAME_TYPE = pyspiel.GameType(
    short_name=SHORT_NAME,
    long_name="The Secret of Monte Cristo",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.PERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=MAX_PLAYERS,
    min_num_players=MIN_PLAYERS,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    provides_factored_observation_string=True,
    parameter_specification=PARAMETERS,
)


def _most_decisions(players: int) -> int:
    """An upper bound of the decisions in one round."""
    cards = 3 * players  # deals, and as many discards of them and of wild bags
    placements = PLACEMENTS_ACTIVE + players - 1 + REINFORCEMENTS * players
    gathering = TREASURE_PLACES * DUNGEONS + HAND_LIMIT * players + DUNGEONS * players  # takes, pays, stops
    return cards + placements + TOKENS_DRAWN + gathering + 1 + LANES


def _game_info(players: int, reward: str, ruleset: Ruleset) -> pyspiel.GameInfo:
    most = {
        "win": 1.0,
        "rank": 1.0,
        # all but the target, a bonus, and the best scoring round there is
        "margin": (ruleset.target + BONUS_POINTS + MOST_POINTS_A_ROUND) / ruleset.target,
    }[reward]
    return pyspiel.GameInfo(
        num_distinct_actions=actions.COUNT,
        max_chance_outcomes=OUTCOMES,
        num_players=players,
        min_utility=-1.0 / (players - 1) if reward == "win" else -most,
        max_utility=most,
        utility_sum=0.0,
        max_game_length=ruleset.round_limit * _most_decisions(players),
    )


class MonteCristoGame(pyspiel.Game):
    """The game with its settings; `pyspiel.load_game("python_montecristo(...)")` makes one.

    Args:
        params: some of `PARAMETERS`, the others as there.
    """

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        values = PARAMETERS | dict(params or {})
        self.ruleset = Ruleset.from_dict({name: _as_setting(name, values[name]) for name in _RULES})
        self.reward = str(values["reward"])
        self._template = GameBatch(1, values["players"], seed=0, ruleset=self.ruleset, reward=self.reward, threads=1)
        self.first_row = self.row_of_seed(0)
        changed = {name: value for name, value in values.items() if value != PARAMETERS.get(name)}
        super().__init__(GAME_TYPE, _game_info(int(values["players"]), self.reward, self.ruleset), changed)

    def new_initial_state(self) -> "MonteCristoState":
        """The start of a game, before its setup."""
        return MonteCristoState(self)

    def max_chance_nodes_in_history(self) -> int:
        """Setup, and what a round can draw."""
        players = self.num_players()
        return int(LANES + KINDS + DUNGEONS + self.ruleset.round_limit * (players + TOKENS_DRAWN))

    def make_py_observer(
        self, iig_obs_type: pyspiel.IIGObservationType | None = None, params: Mapping[str, Any] | None = None
    ) -> "MonteCristoObserver":
        """What a player sees of states, see `MonteCristoObserver`."""
        if params:
            raise InvalidArgument(f"observations have no parameters, but got {dict(params)}")
        return MonteCristoObserver(iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False))

    def row_of_seed(self, seed: int) -> bytes:
        """The row of a new game whose setup is left to chance; the seed is for `SeededChance`."""
        return _changed(self._template.states.tobytes(), chance_nodes.begin_game, np.uint64(seed))

    def next_seed(self, seed: int) -> int:
        """The seed of the game that follows another in the same place, in all interfaces."""
        games = self._template.copy()
        games.reset(rows=0, seed=[seed])
        games.reset(rows=0)
        return int(games.seeds[0])

    def batch_of(self, row: bytes) -> GameBatch:
        """A batch of one, with this row."""
        games = self._template.copy()
        games.states[:] = np.frombuffer(row, STATE)
        return games


def _changed(row: bytes, entry_point: Any, argument: Any) -> bytes:
    """What becomes of a row."""
    memory = bytearray(row)
    entry_point(np.frombuffer(memory, STATE), 0, argument)
    return bytes(memory)


_DECISION, _PLAYER = OFFSET["decision"], OFFSET["current_player"]
_LEGAL = slice(OFFSET["legal"], OFFSET["legal"] + STATE["legal"].itemsize)
_ROUND = slice(OFFSET["round_number"], OFFSET["round_number"] + STATE["round_number"].itemsize)
_NO_ROUND = bytes(STATE["round_number"].itemsize)
_ODDS = slice(OFFSET["scratch"], OFFSET["scratch"] + OUTCOMES)
_FIRST = [int(first) for first in actions.FIRST]
_OVER = int(Decision.OVER)
_CHANCE, _TERMINAL = pyspiel.PlayerId.CHANCE, pyspiel.PlayerId.TERMINAL


@lru_cache(maxsize=2**16)
def _legal_actions(decision: int, bits: bytes) -> list[int]:
    legal = int.from_bytes(bits, "little")
    return [_FIRST[decision] + choice for choice in range(legal.bit_length()) if legal >> choice & 1]


class MonteCristoState(pyspiel.State):
    """A game as it stands: one packed row of the engine, which never changes but is replaced, and so is cloned fast."""

    def __init__(self, game: MonteCristoGame) -> None:
        super().__init__(game)
        self._row = game.first_row

    # --- what OpenSpiel asks of a state

    def current_player(self) -> int:
        """Whose decision it is: a seat, chance, or nobody."""
        player = self._row[_PLAYER]
        if player < MAX_PLAYERS:
            return player
        return cast(int, _TERMINAL if self._row[_DECISION] == _OVER else _CHANCE)

    def is_terminal(self) -> bool:
        """Whether the game is over, by its rules or at the round limit."""
        return self._row[_DECISION] == _OVER

    def _legal_actions(self, player: int) -> list[int]:
        return _legal_actions(self._row[_DECISION], self._row[_LEGAL])

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """What can be drawn next, with exact probabilities given all that the players know."""
        if self.current_player() != _CHANCE:
            return []
        odds = self._row[_ODDS]
        total = sum(odds)
        return [(outcome, weight / total) for outcome, weight in enumerate(odds) if weight]

    def _apply_action(self, action: int) -> None:
        player = self.current_player()
        if player == _CHANCE:
            if not 0 <= action < OUTCOMES or not self._row[_ODDS][action]:
                possible = ", ".join(f"{outcome} ({self._name(outcome)})" for outcome, _ in self.chance_outcomes())
                raise IllegalAction(f"chance cannot have the outcome {action}; possible are {possible}")
            self._row = _changed(self._row, chance_nodes.play_outcome, action)
            return
        legal = _legal_actions(self._row[_DECISION], self._row[_LEGAL])
        if action not in legal:
            named = ", ".join(f"{code} ({actions.decode(code)})" for code in legal) or "none, the game is over"
            raise IllegalAction(f"player {player} may not make the action {action}; legal are {named}")
        self._row = _changed(self._row, chance_nodes.play_decision, action - _FIRST[self._row[_DECISION]])

    def returns(self) -> list[float]:
        """The rewards by seat, all 0 until the game is over."""
        rewards = np.zeros(MAX_PLAYERS)
        if self.is_terminal():
            chance_nodes.write_returns(self._states(), 0, REWARDS.index(self.get_game().reward), rewards)
        return cast(list[float], rewards[: self.num_players()].tolist())

    def _action_to_string(self, player: int, action: int) -> str:
        return self._name(action) if player == _CHANCE else str(actions.decode(action))

    def __str__(self) -> str:
        return self.describe()

    # --- more

    def games(self) -> GameBatch:
        """The game as a `GameBatch` of one, for pictures, agents and the rest of this project; a copy.

        Hidden parts are some that are possible. Where chance is asked there is no batch.
        """
        if self.is_chance_node():
            raise InvalidArgument("a game that waits for chance has no batch: apply an outcome first")
        return cast(GameBatch, self.get_game().batch_of(self._row))

    def observe(self, player: int, out: NDArray[np.float32]) -> None:
        """Writes what a player sees, as float32, into an array of `observation.SIZE`.

        Where chance is asked, nobody decides, and before the end of the setup it is all zeros.
        """
        if self._in_setup():
            out[:] = 0
            return
        counts, no_masks = np.empty((1, observation.SIZE), np.int8), np.empty((0, 0), np.int8)
        batch.write_observations(self._states(), _FIRST_ROW, np.array([player]), counts, out[None], no_masks, 0, 1)
        if self.is_chance_node():
            for field in ("decision", "deciding"):
                observation.view(out, field)[...] = 0

    def deal(self, seed: int) -> None:
        """Lets `dealt` give the outcomes of the game of this seed; only before the first outcome."""
        self._row = self.get_game().row_of_seed(seed)

    def dealt(self) -> int:
        """The outcome that a game dealt beforehand would have here, in `SeededChance`."""
        return int(chance_nodes.dealt_outcome(self._states(), 0, np.zeros(1, STATE)))

    def _in_setup(self) -> bool:
        return self._row[_ROUND] == _NO_ROUND

    def _states(self) -> States:
        return np.frombuffer(bytearray(self._row), STATE)

    def _name(self, outcome: int) -> str:
        """What chance draws, in words that are the same in every state: "card R2"."""
        state = self._states()[0]
        match Draw(chance_nodes.what_is_drawn(self._states(), 0)):
            case Draw.LANE:
                lane = Lane(int(np.flatnonzero(state["lane_size"] == 0)[0]))
                seats = LANE_ORDERS[self.num_players()][outcome]
                return f"lane {lane.name.lower()}: {' '.join(COLOURS[seat] for seat in seats)}"
            case Draw.MARKET:
                return f"market {KIND_LETTERS[outcome]}"
            case Draw.DUNGEON:
                dungeon = int(np.flatnonzero(state["dungeon_tokens"].sum(axis=1) == 0)[0])
                return f"dungeon {DUNGEON_LETTERS[dungeon]}: {token(outcome)}"
            case Draw.CARD:
                return f"card {card(outcome)}"
        return f"token {token(outcome)}"

    def describe(self, player: int = NONE) -> str:
        """The position in words, for a player or for everybody."""
        if not self.is_chance_node():
            return describe(self.games(), 0, player)
        drawn = Draw(chance_nodes.what_is_drawn(self._states(), 0))
        if self._in_setup():
            return f"Chance draws: {drawn.name.lower()}. Setup so far: {self.history_str() or 'none'}."
        _, position = describe(self.get_game().batch_of(self._row), 0, NONE).split("\n", 1)  # nobody decides
        return f"Chance draws: {drawn.name.lower()}.\n{position}"


_FIRST_ROW = np.zeros(1, np.int64)


class MonteCristoObserver:
    """What a player sees of states: `tensor`, its five groups by name in `dict`, and strings.

    The tensor is the float32 observation of all other interfaces (`montecristo_env.observation`). All that bears on the
    future is in it, but which shuffle an unseen card comes from; so it serves as the tensor of the information state,
    too. As a string, an observation is the position in words, and the information state the whole history. Private
    observations are empty.

    Args:
        iig_obs_type: what is wanted.
    """

    def __init__(self, iig_obs_type: pyspiel.IIGObservationType) -> None:
        self._public = iig_obs_type.public_info
        self._perfect_recall = iig_obs_type.perfect_recall
        self.tensor: NDArray[np.float32] | None = None
        self.dict: dict[str, NDArray[np.float32]] = {}
        if self._public:
            self.tensor = np.zeros(observation.SIZE, np.float32)
            self.dict = {
                name: self.tensor[group.slice].reshape(*group.axes, group.width)
                for name, group in observation.GROUPS.items()
            }

    def set_from(self, state: MonteCristoState, player: int) -> None:
        """Writes what this player sees into `tensor`."""
        if self.tensor is not None:
            state.observe(player, self.tensor)

    def string_from(self, state: MonteCristoState, player: int) -> str:
        """What this player sees, in words."""
        if not self._public:
            return ""
        return str(state.history_str()) if self._perfect_recall else state.describe(player)


class SeededChance:
    """Chance that deals the games of a seed: those that all other interfaces deal for it.

    Call it with a state that waits for chance, and it gives the outcome. It can be the `chance_event_sampler` of
    OpenSpiel's `rl_environment`. A state without history, after others, begins the next game of the seed.

    Args:
        seed: see `GameBatch`.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed(seed)

    def seed(self, seed: int | None = None) -> None:
        """Begins anew, with this seed."""
        self._seed = int(seed_of_game(seed))
        self._twin: MonteCristoState | None = None

    def __call__(self, state: MonteCristoState) -> int:
        """The outcome of chance in this state."""
        if not state.is_chance_node():
            raise InvalidArgument("chance is asked, but it is a player's turn, or the game is over")
        history, twin = state.history(), self._twin
        known = twin.history() if twin else []
        if known and not history:
            self._seed = state.get_game().next_seed(self._seed)
        if twin is None or history[: len(known)] != known:
            twin, known = state.get_game().new_initial_state(), []
            twin.deal(self._seed)
        for action in history[len(known) :]:
            twin.apply_action(action)
        self._twin = twin
        return twin.dealt()


class AgentBot(pyspiel.Bot):
    """An agent of this project as a bot of OpenSpiel.

    Args:
        agent: an agent or its name, such as "greedy" or "mcts:200".
    """

    def __init__(self, agent: str | Agent) -> None:
        super().__init__()
        self.agent = make_agent(agent)

    def step(self, state: MonteCristoState) -> int:
        """The action of the agent, who is the current player."""
        return int(self.agent.act(PublicView(state.games()), _FIRST_ROW)[0])


pyspiel.register_game(GAME_TYPE, MonteCristoGame)
