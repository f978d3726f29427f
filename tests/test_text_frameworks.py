"""The game in words as TextArena, verifiers and OpenEnv expect it: whole games with a scripted model, from the seed."""

from __future__ import annotations

import asyncio
import random
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from montecristo_env import GameBatch, InvalidArgument, Ruleset
from stub_model import expected_game, moves_in, scripted, serving

PLAYERS = pytest.mark.parametrize("num_players", [2, 3, 4])
SHORT = "target=6"
RULES = Ruleset.parse(SHORT)
SEED = 3


def rewards_of(games: GameBatch) -> list[float]:
    rewards: list[float] = games.rewards[0, : games.num_players[0]].tolist()
    return rewards


def test_short_games_have_winners_and_losers() -> None:
    """What is compared below is no row of zeros."""
    for num_players in (2, 3, 4):
        games = expected_game(num_players, SEED, ruleset=RULES)
        assert max(rewards_of(games)) > 0 > min(rewards_of(games)) and games.terminated[0]


# --- TextArena -------------------------------------------------------------------------------------------------------


def arena_env(version: str = "", **settings: Any) -> Any:
    ta = pytest.importorskip("textarena")
    import montecristo_env.text.textarena  # noqa: F401 - it registers the game

    return ta.make(f"MonteCristo-v0{version}", **settings)


@PLAYERS
@pytest.mark.parametrize("version", ["", "-train", "-raw"])
def test_textarena_plays_the_games_of_the_batch(num_players: int, version: str) -> None:
    expected = expected_game(num_players, SEED, ruleset=RULES)
    env = arena_env(version, ruleset=SHORT)
    env.reset(num_players=num_players, seed=SEED)
    introduced: set[int] = set()
    done = False
    while not done:
        player, observation = env.get_observation()
        text = observation if isinstance(observation, str) else "\n".join(message for _, message, _ in observation)
        if player not in introduced:
            assert "SCORING ROUND." in text and f"You are {('Red', 'Blue', 'Green', 'Yellow')[player]}." in text
            introduced.add(player)
        assert env.game.current_player == player
        done, _ = env.step(scripted(text))
    rewards, info = env.close()
    assert rewards == dict(enumerate(rewards_of(expected)))
    assert env.game.games.states.tobytes() == expected.states.tobytes()
    assert sum(info[seat]["turn_count"] for seat in range(num_players)) == expected.states["decisions"][0]
    assert info[0]["reason"] == f"{env.game.outcome}." and not any(i["invalid_move"] for i in info.values())


def test_textarena_honours_the_seed_and_leaves_the_global_generator_alone() -> None:
    texts = []
    for number in (7, 7, 8):
        random.seed(number)
        before = random.getstate()
        env = arena_env("-raw")
        env.reset(num_players=2, seed=1 if number == 7 else 2)
        texts.append(env.get_observation()[1][-1][1])
        assert random.getstate() == before
    assert texts[0] == texts[1] != texts[2]


@PLAYERS
def test_textarena_tells_what_was_wrong_and_in_the_end_the_player_loses(num_players: int) -> None:
    env = arena_env("-raw", error_allowance=2)
    env.reset(num_players=num_players, seed=0)
    seat, seen = env.get_observation()
    for _ in range(2):
        assert env.step("I pass") == (False, {})
        again, told = env.get_observation()
        assert again == seat and "names no move; legal are: deal" in told[-1][1]
    env.step(scripted(seen[-1][1]))  # a legal move: then they are forgiven
    seat = env.state.current_player_id
    for _ in range(2):
        assert not env.step("[I pass]")[0]
    assert env.step("I pass")[0]
    rewards, info = env.close()
    assert rewards == pytest.approx({s: -1 if s == seat else 1 / (num_players - 1) for s in range(num_players)})
    assert info[seat]["invalid_move"] and "gave no legal move" in info[seat]["reason"]


# --- verifiers -------------------------------------------------------------------------------------------------------

# No importorskip here and for OpenEnv: CI has them in environments of their own.
verifiers = pytest.mark.skipif(find_spec("verifiers") is None, reason="`make frameworks` runs this")


def episode(reply: Any, task: int = 0, env: dict[str, Any] | None = None, **taskset: Any) -> Any:
    """One episode of a task, run by verifiers, with its model behind a local server."""
    import verifiers.v1 as vf
    from verifiers.v1.utils.loaders import load_environment, resolve_env_config

    config = resolve_env_config(
        {"taskset": {"id": "montecristo-verifiers", "ruleset": SHORT, **taskset}, **(env or {})}
    )
    environment = load_environment(config)

    async def run(address: str) -> Any:
        chosen = next(iter(environment.taskset.skip(task)))
        client = vf.EvalClientConfig(base_url=address, api_key_var="NO_KEY_IS_NEEDED")
        async with environment.serving():
            return await environment.run_episode(
                chosen, vf.ModelContext(model="stub", client=client, sampling=vf.SamplingConfig())
            )

    with serving(reply) as (address, _):
        return asyncio.run(run(address))


def last_prompt(body: dict[str, Any]) -> str:
    """The last message with legal moves in it."""
    return next(m["content"] for m in reversed(body["messages"]) if moves_in(str(m["content"])))


@verifiers
@PLAYERS
def test_verifiers_plays_the_games_of_the_batch_against_itself(num_players: int) -> None:
    expected = expected_game(num_players, SEED, ruleset=RULES)
    played = episode(lambda body: scripted(last_prompt(body)), task=2, num_players=num_players, first_seed=SEED - 2)
    assert played.ok and not played.errors
    traces = {trace.info["seat"]: trace for trace in played.traces}
    assert list(traces) and len(played.traces) == num_players
    for seat, name in enumerate(("Red", "Blue", "Green", "Yellow")[:num_players]):
        trace = traces[name]
        assert trace.reward == pytest.approx(rewards_of(expected)[seat])
        assert trace.metrics["score"] == expected.scores[0, seat] and trace.metrics["illegal_answers"] == 0
        assert "SCORING ROUND." in trace.branches[-1].messages[0].content
    assert sum(trace.num_turns for trace in played.traces) == expected.states["decisions"][0]


@verifiers
def test_verifiers_plays_against_agents() -> None:
    played = [episode(lambda body: scripted(last_prompt(body)), task=task, opponents=["random"]) for task in (0, 1, 0)]
    assert [len(one.traces) for one in played] == [1, 1, 1] and all(one.ok for one in played)
    assert [one.traces[0].info["seat"] for one in played] == ["Red", "Blue", "Red"]
    assert played[0].traces[0].reward == played[2].traces[0].reward
    assert [n.message.content for n in played[0].traces[0].nodes] == [
        n.message.content for n in played[2].traces[0].nodes
    ]


@verifiers
def test_verifiers_asks_again_and_in_the_end_the_player_loses() -> None:
    played = episode(lambda body: "I pass", num_players=3, env={"attempts": 2})
    assert played.ok
    assert sorted(trace.reward for trace in played.traces) == pytest.approx([-1, 0.5, 0.5])
    (loser,) = (trace for trace in played.traces if trace.reward < 0)
    assert loser.metrics["illegal_answers"] == 2 and loser.num_turns == 2
    assert "names no move; legal are:" in loser.branches[-1].messages[-2].content


@verifiers
def test_verifiers_ends_the_game_of_a_player_whose_run_ends() -> None:
    played = episode(lambda body: scripted(last_prompt(body)), env={"player": {"max_turns": 3}})
    assert sorted(trace.reward for trace in played.traces) == [-1, 1]


@verifiers
def test_verifiers_tasks_are_seeded_and_bad_settings_are_refused() -> None:
    from montecristo_env.text.verifiers import MonteCristoConfig, MonteCristoTaskset

    taskset = MonteCristoTaskset(MonteCristoConfig(num_players=4, first_seed=10))
    tasks = list(taskset.take(3))
    assert [task.data.seed for task in tasks] == [10, 11, 12]
    assert len({task.key for task in tasks}) == 3 and not taskset.bounded
    with pytest.raises(InvalidArgument, match="opponents must be none or 3"):
        next(iter(MonteCristoTaskset(MonteCristoConfig(num_players=4, opponents=["random"]))))


# --- OpenEnv ---------------------------------------------------------------------------------------------------------

openenv = pytest.mark.skipif(find_spec("openenv") is None, reason="`make frameworks` runs this")


@openenv
@PLAYERS
def test_openenv_environment_plays_the_games_of_the_batch(num_players: int) -> None:
    from montecristo_env.text.openenv import MonteCristoAction, MonteCristoEnvironment

    expected = expected_game(num_players, SEED, ruleset=RULES)
    env = MonteCristoEnvironment()
    seen = env.reset(seed=SEED, num_players=num_players, ruleset=SHORT)
    assert "SCORING ROUND." in seen.rules and not seen.done
    while not seen.done:
        assert moves_in(seen.prompt) == seen.legal_moves
        mover = seen.seat
        seen = env.step(MonteCristoAction(move=scripted(seen.prompt)))
    assert seen.rewards == rewards_of(expected) and seen.reward == seen.rewards[mover]
    assert seen.scores == expected.scores[0, :num_players].tolist() and seen.seat == -1
    assert env.state.step_count == expected.states["decisions"][0] and env.state.illegal_answers == 0
    with pytest.raises(InvalidArgument, match="reset first"):
        env.step(MonteCristoAction(move="enter A"))


@openenv
def test_openenv_says_what_was_wrong_and_in_the_end_the_player_loses() -> None:
    from montecristo_env.text.openenv import MonteCristoAction, MonteCristoEnvironment

    env = MonteCristoEnvironment(attempts=2)
    start = env.reset(seed=1, num_players=3)
    again = env.step(MonteCristoAction(move="I pass"))
    assert "names no move; legal are: deal" in again.error and not again.done and again.reward == 0
    assert again.prompt == start.prompt and again.legal_moves == start.legal_moves
    end = env.step(MonteCristoAction(move="99"))
    assert end.done and end.reward == -1 and sorted(end.rewards) == [-1, 0.5, 0.5]
    assert env.state.illegal_answers == 2


def run_example_of_the_docs(word: str) -> None:
    page = (Path(__file__).parent.parent / "docs/text.md").read_text(encoding="utf-8")
    (code,) = (code for code in re.findall(r"```py\n(.*?)```", page, flags=re.DOTALL) if word in code)
    exec(compile(code, "example", "exec"), {})


@verifiers
def test_verifiers_example_of_the_docs_runs() -> None:
    run_example_of_the_docs("verifiers")


@openenv
def test_openenv_example_of_the_docs_runs() -> None:
    run_example_of_the_docs("openenv")


@openenv
@PLAYERS
def test_openenv_server_plays_over_the_network(num_players: int) -> None:
    import threading
    import time

    import uvicorn
    from openenv import GenericEnvClient

    from montecristo_env.text.openenv import app

    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    settings = {"seed": SEED, "num_players": num_players, "ruleset": SHORT}
    try:
        with (
            GenericEnvClient(base_url=f"http://127.0.0.1:{port}").sync() as client,
            GenericEnvClient(base_url=f"http://127.0.0.1:{port}").sync() as other,
        ):
            result = client.reset(**settings)
            assert other.reset(**settings).observation["prompt"] == result.observation["prompt"]
            assert other.reset(**settings | {"seed": SEED + 1}).observation["prompt"] != result.observation["prompt"]
            while not result.done:
                result = client.step({"move": scripted(result.observation["prompt"])})
            state = client.state()
    finally:
        server.should_exit = True
        thread.join()
    expected = expected_game(num_players, SEED, ruleset=RULES)
    assert result.observation["rewards"] == rewards_of(expected)
    assert result.observation["scores"] == expected.scores[0, :num_players].tolist()
    assert (state["num_players"], state["seed"]) == (num_players, SEED)
    assert np.isin(result.reward, rewards_of(expected))
