"""The agent that asks a language model, against a local server that may be slow, wrong, malformed or cut off."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from montecristo_agents.arena import play
from montecristo_env import GameBatch, InvalidArgument, PublicView, Ruleset, actions, make_agent
from stub_model import Broken, CutOff, Raw, Reply, Slow, Status, Trickling, expected_game, scripted, serving

pytest.importorskip("openai")
from montecristo_agents.llm import LlmAgent, ModelFailed

SHORT = Ruleset(target=6)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _agents_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A connection left open would be a warning in some later test."""
    made: list[LlmAgent] = []
    init = LlmAgent.__init__

    def noted(self: LlmAgent, settings: str = "") -> None:
        init(self, settings)
        made.append(self)

    monkeypatch.setattr(LlmAgent, "__init__", noted)
    yield
    for agent in made:
        agent.close()


def obedient(body: dict[str, Any]) -> str:
    return scripted(body["messages"][1]["content"])


def replies(*answers: Any) -> Reply:
    """These answers, one after the other; then legal ones."""
    waiting = iter(answers)
    return lambda body: next(waiting, None) or obedient(body)


def always(answer: Any) -> Reply:
    return lambda body: answer


def decide(
    reply: Reply, settings: str = "", rows: int = 1, usage: bool = True
) -> tuple[LlmAgent, list[str], list[Any]]:
    """The moves of an agent at the beginning of some games, and the requests it made."""
    games = GameBatch(rows, 3, seed=0)
    with serving(reply, usage) as (address, seen):
        agent = LlmAgent(f"stub:base_url={address}:retries=1{settings}")
        try:
            codes = agent.act(PublicView(games), np.arange(rows))
        finally:
            agent.close()
    assert games.action_mask()[np.arange(rows), codes].all()
    return agent, [str(actions.decode(code)) for code in codes.tolist()], seen


def counts(agent: LlmAgent) -> dict[str, int]:
    return {name: count for name, count in vars(agent.usage).items() if count and "token" not in name}


# --- Play ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_plays_whole_games_by_what_the_model_says(num_players: int) -> None:
    expected = expected_game(num_players, 3, ruleset=SHORT)
    games = GameBatch(1, num_players, seed=3, ruleset=SHORT)
    with serving(obedient) as (address, seen):
        agent = make_agent(f"llm:stub:base_url={address}")
        while not games.over[0]:
            games.step(agent.act(PublicView(games), np.arange(1)))
    assert games.states.tobytes() == expected.states.tobytes()
    asked = int(games.states["decisions"][0])
    assert counts(agent) == {"decisions": asked, "calls": asked} and len(seen) == asked
    assert (agent.usage.prompt_tokens, agent.usage.completion_tokens) == (900 * asked, 20 * asked)


def test_the_model_gets_rules_position_and_settings_and_nothing_hidden() -> None:
    games = GameBatch(1, 2, seed=0)
    others = games.resample_hidden(np.random.default_rng(0))
    with serving(obedient) as (address, seen):
        agent = LlmAgent(f"org/model:7b:base_url={address}:temperature=0.5:max_tokens=99:long=1")
        for batch in (games, others):
            agent.act(PublicView(batch), np.arange(1))
    assert seen[0] == seen[1]
    assert (seen[0]["model"], seen[0]["temperature"], seen[0]["max_tokens"]) == ("org/model:7b", 0.5, 99)
    system, user = seen[0]["messages"]
    assert system["role"] == "system" and "scoring round" in system["content"].lower()
    assert user["role"] == "user" and "Your legal moves:" in user["content"]


def test_many_games_are_asked_at_the_same_time_with_the_same_moves() -> None:
    one, moves, _ = decide(obedient, rows=12)
    many, same, _ = decide(obedient, ":parallel=6", rows=12)
    assert moves == same and len(set(moves)) > 1
    assert counts(one) == counts(many) == {"decisions": 12, "calls": 12}


def test_tokens_are_estimated_where_the_server_does_not_count() -> None:
    agent, _, seen = decide(obedient, usage=False)
    characters = sum(len(message["content"]) for message in seen[0]["messages"])
    assert agent.usage.prompt_tokens == -(-characters // 4) and agent.usage.completion_tokens > 5


# --- Faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["I pass.", "enter Z", "stop taking", "99", CutOff("I think that I should enter A")])
def test_an_illegal_answer_is_told_why_and_asked_again(wrong: str) -> None:
    agent, _, seen = decide(replies(wrong))
    assert counts(agent) == {"decisions": 1, "calls": 2, "illegal_answers": 1}
    *_, answer, complaint = seen[1]["messages"]
    assert answer == {"role": "assistant", "content": wrong}
    assert ("cut off" if isinstance(wrong, CutOff) else "legal are: deal") in complaint["content"]


def test_an_empty_answer_counts_as_illegal() -> None:
    agent, _, _ = decide(always(" \n"))
    assert counts(agent) == {"decisions": 1, "calls": 3, "illegal_answers": 3, "fallbacks": 1}


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_passing_failure_is_retried(status: int) -> None:
    agent, _, _ = decide(replies(Status(status)))
    assert counts(agent) == {"decisions": 1, "calls": 2}


@pytest.mark.parametrize(
    "fault",
    [
        Status(500),
        Status(429),
        Raw("this is no JSON"),
        Raw("[]"),
        Raw("{}"),
        Raw('{"choices": []}'),
        Raw('{"choices": [{"message": null}]}'),
        Raw('{"choices": [{"message": {"content": 5}}]}'),
        Broken('{"choices": [{"mess'),
    ],
)
def test_a_server_that_keeps_failing_leads_to_a_counted_random_move(fault: Any) -> None:
    agent, moves, _ = decide(always(fault))
    assert agent.usage.failures == 3 and agent.usage.fallbacks == 1
    assert agent.usage.calls == (
        6 if isinstance(fault, Status | Broken) else 3
    )  # a call that came through is not retried
    assert moves == decide(always(fault))[1]  # from the random stream of the game
    with pytest.raises(ModelFailed, match="llm:stub: the server"):
        decide(always(fault), ":fallback=error")


def test_a_slow_server_is_not_waited_for() -> None:
    agent, _, _ = decide(always(Slow("enter A")), ":timeout=0.1:attempts=1")
    assert counts(agent) == {"decisions": 1, "calls": 2, "failures": 1, "fallbacks": 1}


def test_a_server_that_always_sends_a_little_is_not_waited_for() -> None:
    begun = time.monotonic()
    agent, _, _ = decide(always(Trickling("enter A")), ":timeout=0.3:attempts=1")
    assert counts(agent) == {"decisions": 1, "calls": 2, "failures": 1, "fallbacks": 1}
    assert time.monotonic() - begun < 10  # the whole answer takes more than 15 seconds, twice


def test_no_server_at_all() -> None:
    agent = LlmAgent("stub:base_url=http://127.0.0.1:9/v1:retries=0:attempts=1:fallback=error")
    with pytest.raises(ModelFailed, match="llm:stub: the server failed: Connection error"):
        agent.act(PublicView(GameBatch(1, 2, seed=0)), np.arange(1))


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_that_will_not_change_is_always_an_error(status: int) -> None:
    with pytest.raises(ModelFailed, match=f"llm:stub: .*{status}.*as told"):
        decide(always(Status(status)))


# --- Budgets ---------------------------------------------------------------------------------------------------------


def test_the_budget_of_calls_is_never_exceeded() -> None:
    agent, _, seen = decide(obedient, ":calls=5", rows=8)
    assert len(seen) == 5 and counts(agent) == {"decisions": 8, "calls": 5, "fallbacks": 3}
    agent, _, seen = decide(always(Status(500)), ":calls=5", rows=8)
    assert len(seen) == 5 and agent.usage.fallbacks == 8
    _, _, seen = decide(always(Status(500)), ":calls=5:parallel=4", rows=8)
    assert len(seen) <= 5


def test_the_budget_of_tokens_ends_the_calls() -> None:
    agent, _, seen = decide(obedient, ":tokens=2000", rows=8)  # 920 each
    assert len(seen) == 3 and agent.usage.fallbacks == 5


@pytest.mark.parametrize("budget", ["calls=0", "tokens=0"])
def test_without_a_budget_left_it_can_be_an_error(budget: str) -> None:
    with pytest.raises(ModelFailed, match="the budget is spent"):
        decide(obedient, f":{budget}:fallback=error")


# --- Settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("llm", "llm needs the name of a model"),
        ("llm:", "llm needs the name of a model"),
        ("llm:timeout=3", "llm needs the name of a model"),
        ("llm:m", "needs an address"),
        ("llm:m:speed=3", "'speed=3' is no setting of llm: these are base_url, timeout"),
        ("llm:m:timeout=soon", "timeout must be a number from 0.001 to 3,600, but is 'soon'"),
        ("llm:m:timeout=nan", "timeout must be a number"),
        ("llm:m:attempts=0", "attempts must be a number from 1 to 100"),
        ("llm:m:fallback=best", "fallback must be random or error"),
    ],
)
def test_bad_settings_are_refused(name: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        make_agent(name)


def test_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(obedient) as (address, seen):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        make_agent("llm:a:b").act(PublicView(GameBatch(1, 2, seed=0)), np.arange(1))
    assert seen[0]["model"] == "a:b"
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.setenv("OPENAI_API_KEY", "something")
    assert make_agent("llm:m").name == "llm:m"


def test_an_agent_is_not_sent_to_other_processes() -> None:
    """Each copy would have the whole budget."""
    agent = LlmAgent("m:base_url=http://127.0.0.1:9/v1")
    for send in (pickle.dumps, copy.deepcopy):
        with pytest.raises(InvalidArgument, match="cannot be sent to another"):
            send(agent)


# --- The arena -------------------------------------------------------------------------------------------------------


@pytest.fixture
def address() -> Iterator[str]:
    with serving(obedient) as (address, _):
        yield address


def test_meets_other_agents_on_duplicate_deals(address: str) -> None:
    name = f"llm:stub:base_url={address}:parallel=4"
    report = play([name, "greedy"], players=2, deals=2, ruleset=SHORT, progress=False)
    again = play([name, "greedy"], players=2, deals=2, ruleset=SHORT, progress=False)
    assert report.pair(name, "greedy").win_rate == again.pair(name, "greedy").win_rate


def test_the_arena_reports_what_was_used(address: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "montecristo_agents.arena", "llm:stub:calls=10", "greedy"]
    command += ["--deals", "1", "--ruleset", "target=6", "--folder", str(tmp_path / "run")]
    done = subprocess.run(
        command, env=os.environ | {"OPENAI_BASE_URL": address}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    (usage,) = json.loads((tmp_path / "run/report.json").read_text())["usage"]
    assert usage in " ".join(done.stdout.split())
    used = re.search(r"llm:stub: (\d+) decisions, 10 calls, .* 0 illegal answers, (\d+) random moves", usage)
    assert used and int(used[1]) - int(used[2]) == 10
