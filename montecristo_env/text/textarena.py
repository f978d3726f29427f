"""The game for TextArena: importing this registers `MonteCristo-v0` there, and its forms `-train` and `-raw`.

```python
import textarena as ta
import montecristo_env.text.textarena

env = ta.make("MonteCristo-v0")
env.reset(num_players=3, seed=0)
done = False
while not done:
    player, observation = env.get_observation()
    done, info = env.step(agents[player](observation))
rewards, game_info = env.close()
```

Make a new one for every game: TextArena's wrappers keep what was observed in the games before.
"""

from typing import Any

from montecristo_env.errors import IllegalAction, InvalidNotation
from montecristo_env.ruleset import RulesetLike
from montecristo_env.text.game import TextGame
from montecristo_env.text.moves import NAMES
from montecristo_env.text.rules import rules
from montecristo_env.util.commands import missing

try:
    import textarena as ta
    from textarena.envs.registration import ENV_REGISTRY, register_with_versions
    from textarena.wrappers import ActionFormattingWrapper, GameBoardObservationWrapper, LLMObservationWrapper
except ImportError as error:
    raise missing("this", error.name, "textarena") from error

ID = "MonteCristo-v0"


class MonteCristoEnv(ta.Env):
    """One game for 2, 3 or 4 players, who are asked for moves in words.

    Same seed, same game: the seed goes to the game alone, while TextArena's own states seed Python's global generator.
    An illegal answer is told why and asked again, `error_allowance` times in a row; then the player has lost, with a
    reward of -1, and the others share 1. Otherwise rewards are those of `GameBatch`.

    Args:
        ruleset: see `GameBatch`.
        reward: see `GameBatch`.
        long: whether positions are told in the long form.
        error_allowance: illegal answers in a row that are forgiven.
    """

    def __init__(
        self, ruleset: RulesetLike = None, reward: str = "win", long: bool = False, error_allowance: int = 2
    ) -> None:
        self._settings: dict[str, Any] = {"ruleset": ruleset, "reward": reward, "long": long}
        self._error_allowance = error_allowance

    def reset(self, num_players: int, seed: int | None = None) -> None:
        """Starts a game."""
        self.game = TextGame(num_players, seed, **self._settings)
        self.state = ta.FFAMultiPlayerState(num_players=num_players, error_allowance=self._error_allowance)
        self.state.reset(
            game_state={}, player_prompt_function=self._introduce, role_mapping=dict(enumerate(NAMES[:num_players]))
        )
        self._ask()

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        """The answer of the current player."""
        seat = self.state.current_player_id
        self.state.add_observation(action, ta.ObservationType.PLAYER_ACTION, from_id=seat, to_id=seat)
        try:
            self.game.play(action)
        except (InvalidNotation, IllegalAction) as error:
            if self.state.set_invalid_move(reason=f"{error}."):
                rewards = dict(enumerate(self.game.forfeit(seat)))
                self.state.set_game_outcome(rewards, reason=f"{NAMES[seat]} gave no legal move: {error}.")
            done, info = self.state.step(rotate_player=False)
            return bool(done), info
        if self.game.over:
            self.state.set_game_outcome(dict(enumerate(self.game.rewards)), reason=f"{self.game.outcome}.")
        done, info = self.state.step(rotate_player=False)
        if not done:
            self._ask()
        return bool(done), info

    def _ask(self) -> None:
        self.state.manually_set_current_player_id(self.game.current_player)
        self.state.add_observation(
            self.game.prompt(), ta.ObservationType.GAME_BOARD, to_id=self.state.current_player_id
        )

    def _introduce(self, player_id: int, game_state: dict[str, Any]) -> str:
        return f"{rules(self.game.games.ruleset, self.game.num_players)}\n\nYou are {NAMES[player_id]}."


if ID not in ENV_REGISTRY:
    register_with_versions(
        id=ID,
        entry_point=f"{__name__}:MonteCristoEnv",
        wrappers={
            "default": [LLMObservationWrapper, ActionFormattingWrapper],
            "-train": [GameBoardObservationWrapper, ActionFormattingWrapper],
        },
    )
