"""The game for verifiers: a taskset of seeded games, an environment that plays them, and the harness it plays with.

verifiers finds it by the name of a top-level module, `montecristo_verifiers`:

```sh
vf-eval montecristo-verifiers -m MODEL -n 10 --env.taskset.num-players 3
```

In self-play every seat is an interaction of its own with the role `player`, and so has a trace and a reward of its own.
With `opponents`, agents of this project play the other seats, and the player's seat changes from task to task.
"""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

from montecristo_env.errors import IllegalAction, InvalidArgument, InvalidNotation
from montecristo_env.ruleset import Ruleset
from montecristo_env.text.game import TextGame
from montecristo_env.text.moves import NAMES
from montecristo_env.text.rules import rules
from montecristo_env.util.commands import missing

try:
    import verifiers.v1 as vf
    from openai import AsyncOpenAI
    from pydantic import Field
    from verifiers.v1.dialects.chat import message_to_wire
except ImportError as error:
    raise missing("this", error.name, "verifiers") from error


class MonteCristoConfig(vf.TasksetConfig):
    """What is played, under `--env.taskset.*`."""

    num_players: int = 2
    """2, 3 or 4."""
    first_seed: int = 0
    """The seed of the first task; the others follow."""
    opponents: list[str] = Field(default_factory=list)
    """Names of agents that play the other seats; none for self-play."""
    ruleset: str = ""
    """Settings of the game that differ from the default, such as "target=30"."""
    reward: str = "win"
    """See `GameBatch`."""
    long: bool = False
    """Whether positions are told in the long form."""


class MonteCristoData(vf.TaskData):
    """One game."""

    seed: int
    num_players: int
    opponents: list[str]
    seat: int
    ruleset: str
    reward: str
    long: bool


class MonteCristoTask(vf.Task[MonteCristoData]):
    """A game to be played; its rewards are recorded by the environment."""


class MonteCristoTaskset(vf.Taskset[MonteCristoTask, MonteCristoConfig]):
    """Games with the seeds from `first_seed` on, without end."""

    INFINITE = True

    def load(self) -> Iterator[MonteCristoTask]:
        """One task per seed."""
        config = self.config
        settings = config.model_dump(include={"num_players", "opponents", "ruleset", "reward", "long"})
        if config.opponents and len(config.opponents) != config.num_players - 1:
            raise InvalidArgument(f"opponents must be none or {config.num_players - 1}, but are {config.opponents}")
        introduction = rules(Ruleset.parse(config.ruleset), config.num_players)
        seed = config.first_seed
        while True:
            name, seat = f"montecristo-{config.num_players}p-{seed}", seed % config.num_players
            data = MonteCristoData(name=name, system_prompt=introduction, seed=seed, seat=seat, **settings)
            yield MonteCristoTask(data, config.task)
            seed += 1


class MonteCristoEnvConfig(vf.EnvConfig):
    """Who plays, under `--env.*`."""

    player: vf.AgentConfig = vf.AgentConfig(runtime={"type": "subprocess"})  # in which nothing is run
    attempts: int = 3
    """Answers to one question; if none of them is legal, the game is lost."""


class MonteCristoEnv(vf.Env[MonteCristoEnvConfig]):
    """Plays one game; the reward of each trace is that of its seat, as `GameBatch` gives it.

    A player who gives no legal answer in all attempts, or whose run ends before the game does, gets -1; the others
    share 1. Every trace also has the metrics `score` and `illegal_answers`.
    """

    async def run(self, task: MonteCristoTask, agents: vf.Agents) -> None:
        """One episode."""
        data = task.data
        game = TextGame(
            data.num_players,
            data.seed,
            ruleset=data.ruleset,
            reward=data.reward,
            long=data.long,
            opponents=data.opponents,
            seat=data.seat,
        )
        seats = [data.seat] if data.opponents else list(range(data.num_players))
        illegal = dict.fromkeys(seats, 0)
        rewards: list[float] | None = None
        async with AsyncExitStack() as stack:
            talks = {seat: await stack.enter_async_context(agents.player.interaction(task)) for seat in seats}
            while not game.over and rewards is None:
                seat, message = game.current_player, game.prompt()
                for _ in range(self.config.attempts):
                    segment = await talks[seat].turn(message)
                    if segment.terminated:
                        rewards = game.forfeit(seat)
                        break
                    try:
                        game.play(segment.last_reply)
                        break
                    except (InvalidNotation, IllegalAction) as error:
                        illegal[seat] += 1
                        message = f"{error}."
                else:
                    rewards = game.forfeit(seat)
        for seat, talk in talks.items():
            talk.trace.info["seat"] = NAMES[seat]
            talk.trace.info["outcome"] = f"{game.outcome}."
            talk.trace.record_reward("game_reward", (rewards or game.rewards)[seat], 1.0)
            talk.trace.record_metric("score", float(game.scores[seat]))
            talk.trace.record_metric("illegal_answers", float(illegal[seat]))


class ChatHarness(vf.Harness[vf.HarnessConfig]):
    """Sends the conversation to the model and takes its answer, inside this process: there is nothing to execute."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """One answer."""
        system, prompt = self.resolve_prompt(data)
        messages: list[Any] = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or ()]
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0, timeout=None) as client:
            await client.chat.completions.create(model=ctx.model, messages=messages)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")
