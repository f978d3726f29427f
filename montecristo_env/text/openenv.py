"""The game for OpenEnv: an environment, and a server of it.

```sh
uvicorn montecristo_env.text.openenv:app --port 8000
```

Games are played over a WebSocket, as OpenEnv's clients do; every session has a game of its own.
"""

from typing import Any
from uuid import uuid4

from montecristo_env.errors import IllegalAction, InvalidArgument, InvalidNotation
from montecristo_env.text.game import TextGame
from montecristo_env.text.rules import rules
from montecristo_env.util.commands import missing

try:
    from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
    from openenv.core.env_server.types import EnvironmentMetadata
    from pydantic import Field
except ImportError as error:
    raise missing("this", error.name, "openenv") from error

MOST_SESSIONS = 64


class MonteCristoAction(Action):
    """An answer."""

    move: str = Field(description="a legal move in notation, such as 'enter A'; prose around it does no harm")


class MonteCristoObservation(Observation):
    """What the decider is told. `reward` is that of the seat that has just moved, or of the learner's seat."""

    prompt: str = Field(description="the position and the legal moves in words; at the end, who has won")
    rules: str = Field(default="", description="the rules of the game; after a reset only")
    seat: int = Field(description="who must decide, from 0; -1 when the game is over")
    legal_moves: list[str] = Field(description="in notation")
    scores: list[int] = Field(description="points by seat")
    rewards: list[float] = Field(description="by seat; all 0 until the end")
    error: str = Field(default="", description="what was wrong with the last answer; it changed nothing")


class MonteCristoState(State):
    """Settings and progress of the game."""

    num_players: int = 2
    seed: int | None = None
    illegal_answers: int = 0


class MonteCristoEnvironment(Environment[MonteCristoAction, MonteCristoObservation, MonteCristoState]):
    """One game; the client plays all seats, or one against agents of this project.

    An illegal answer changes nothing, and the observation says what was wrong. After `attempts` of them in a row the
    game is lost: -1 for that seat, and the others share 1.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, attempts: int = 3) -> None:
        super().__init__()
        self._attempts = attempts
        self._game: TextGame | None = None
        self._state = MonteCristoState()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        num_players: int = 2,
        opponents: tuple[str, ...] | list[str] = (),
        seat: int = 0,
        ruleset: Any = None,
        reward: str = "win",
        long: bool = False,
    ) -> MonteCristoObservation:
        """Starts a game; for the arguments see `TextGame`. Same seed, same game."""
        self._game = TextGame(
            num_players, seed, ruleset=ruleset, reward=reward, long=long, opponents=opponents, seat=seat
        )
        self._learner = seat if opponents else None
        self._in_a_row = 0
        self._state = MonteCristoState(episode_id=episode_id or str(uuid4()), num_players=num_players, seed=seed)
        return self._observe(rules=rules(self._game.games.ruleset, num_players))

    def step(self, action: MonteCristoAction, timeout_s: float | None = None, **kwargs: Any) -> MonteCristoObservation:
        """Plays an answer."""
        game = self._game
        if game is None or game.over or self._in_a_row >= self._attempts:
            raise InvalidArgument("there is no game to play on: reset first")
        seat = game.current_player
        self._state.step_count += 1
        try:
            game.play(action.move)
        except (InvalidNotation, IllegalAction) as error:
            self._state.illegal_answers += 1
            self._in_a_row += 1
            if self._in_a_row < self._attempts:
                return self._observe(reward=0.0, error=f"{error}.")
            rewards = game.forfeit(seat)
            return self._observe(done=True, reward=rewards[seat], rewards=rewards, error=f"{error}.")
        self._in_a_row = 0
        return self._observe(reward=game.rewards[seat if self._learner is None else self._learner])

    @property
    def state(self) -> MonteCristoState:
        """Settings and progress of the game."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """What the server tells about itself."""
        return EnvironmentMetadata(name="montecristo", description="The Secret of Monte Cristo, a board game, in words")

    def _observe(self, **more: Any) -> MonteCristoObservation:
        game = self._game
        assert game is not None
        told = {"done": game.over, "rewards": game.rewards} | more
        return MonteCristoObservation(
            prompt=game.prompt(),
            seat=game.current_player,
            legal_moves=game.legal_moves,
            scores=game.scores,
            **told,
        )


app = create_fastapi_app(
    MonteCristoEnvironment,
    MonteCristoAction,
    MonteCristoObservation,
    max_concurrent_envs=MOST_SESSIONS,
    state_cls=MonteCristoState,
)
