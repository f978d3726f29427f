"""The player that asks a language model, at any address that speaks OpenAI's protocol."""

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from montecristo_env import actions
from montecristo_env.agent import PublicView
from montecristo_env.core.actions import Action
from montecristo_env.core.constants import NONE
from montecristo_env.errors import IllegalAction, InvalidArgument, InvalidNotation, MonteCristoError
from montecristo_env.text import parse_move, prompt, rules
from montecristo_env.util.commands import missing

try:
    import httpx  # comes with openai
    import openai
except ImportError as error:
    raise missing("the agent llm", error.name, "llm") from error

FALLBACKS = ("random", "error")
CHARACTERS_PER_TOKEN = 4  # an estimate, where the server does not say how many tokens it took
_CUT_OFF = "the answer was cut off before its end; answer shorter"
_NOTHING = "the answer was empty"
_PASSING = (408, 409, 429)  # the answers of a server that may be better next time, besides all from 500 on
_SPLIT = re.compile(r":(?=[a-z_]+=)")


class ModelFailed(MonteCristoError):
    """A language model gave no legal move, or its budget is spent, and `fallback=error` forbids to go on."""


class _Timed(httpx.SyncByteStream):
    """The body of an answer, which must end in time; httpx itself only limits how long nothing comes."""

    def __init__(self, stream: httpx.SyncByteStream, deadline: float) -> None:
        self._stream, self._deadline = stream, deadline

    def __iter__(self) -> Iterator[bytes]:
        for part in self._stream:
            if time.monotonic() > self._deadline:
                raise httpx.ReadTimeout("the answer took too long")
            yield part

    def close(self) -> None:
        self._stream.close()


class Question(NamedTuple):
    """What one decision needs; made before the calls, since a batch may be used by one thread at a time."""

    rules: str
    text: str
    legal: list[Action]


@dataclass
class Usage:
    """What an agent has used so far."""

    decisions: int = 0
    calls: int = 0
    """Requests sent, those repeated after a failure included."""
    failures: int = 0
    """Answers that did not come, even after all retries, or that were not what the protocol says."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    illegal_answers: int = 0
    """Answers without a legal move; those that were cut off count, too."""
    fallbacks: int = 0
    """Decisions that were made at random instead."""

    @property
    def tokens(self) -> int:
        """All tokens together."""
        return self.prompt_tokens + self.completion_tokens


def _number(low: float, high: float, kind: Callable[[str], Any] = int) -> Callable[[str, str], Any]:
    """A reader of numbers in a range."""

    def read(name: str, text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise InvalidArgument(f"{name} must be a number from {low:,} to {high:,}, but is {text!r}")
        return value

    return read


def _fallback(name: str, text: str) -> str:
    if text not in FALLBACKS:
        raise InvalidArgument(f"{name} must be {' or '.join(FALLBACKS)}, but is {text!r}")
    return text


_MANY = 10**12
_SETTINGS: dict[str, tuple[Callable[[str, str], Any], Any]] = {  # how each is read, and its default
    "base_url": (lambda _, text: text, None),
    "timeout": (_number(0.001, 3600, float), 60.0),
    "retries": (_number(0, 100), 2),
    "attempts": (_number(1, 100), 3),
    "calls": (_number(0, _MANY), 10_000),
    "tokens": (_number(0, _MANY), 20_000_000),
    "fallback": (_fallback, "random"),
    "temperature": (_number(0, 10, float), None),
    "max_tokens": (_number(1, 10**7), None),
    "parallel": (_number(1, 256), 1),
    "long": (_number(0, 1), 0),
}


class LlmAgent:
    """Asks a language model for every decision: `llm:MODEL`, with settings `llm:MODEL:timeout=20:calls=500`.

    The model gets the rules and the position in words (`montecristo_env.text`), without earlier turns. After an illegal
    answer it is told what was wrong and asked again. If it stays illegal, if the server fails in all retries, or if the
    budget is spent, a random legal move is played and counted, from the random stream of the game, or `ModelFailed`
    is raised, as `fallback` says. A refusal that will not change, such as an unknown model or a wrong key, is
    always raised. `usage` has all counts; the arena prints them.

    Args:
        settings: the model, then settings, each behind a colon. `base_url=http://127.0.0.1:8000/v1`: the address, by
            default what the variable OPENAI_BASE_URL says, or OpenAI; the key is that of OPENAI_API_KEY. `timeout=60`:
            seconds for a call. `retries=2`: repetitions of a call that failed. `attempts=3`: answers to one question.
            `calls=10000`, `tokens=20000000`: the budget of this agent. `fallback=random` or `fallback=error`.
            `temperature=T`, `max_tokens=N`: sent to the model if given. `parallel=1`: calls at the same time, when many
            games are played. `long=1`: the long form of positions.
    """

    def __init__(self, settings: str = "") -> None:
        model, *options = _SPLIT.split(settings)
        if not model or "=" in model.partition(":")[0]:
            raise InvalidArgument("llm needs the name of a model: llm:MODEL, or llm:MODEL:base_url=ADDRESS")
        given: dict[str, Any] = {name: default for name, (_, default) in _SETTINGS.items()}
        for option in options:
            name, _, text = option.partition("=")
            if name not in _SETTINGS:
                raise InvalidArgument(f"{option!r} is no setting of llm: these are {', '.join(_SETTINGS)}")
            given[name] = _SETTINGS[name][0](name, text)
        self.model = model
        self.settings = given
        self.name = f"llm:{model}"
        self.usage = Usage()
        self._reserved = 0
        self._lock = threading.Lock()
        address = given["base_url"] or os.environ.get("OPENAI_BASE_URL")
        key = os.environ.get("OPENAI_API_KEY") or ("none" if address else None)
        if key is None:
            raise InvalidArgument("llm needs an address, OPENAI_BASE_URL or base_url=, or OPENAI_API_KEY for OpenAI's")
        self._client = openai.OpenAI(
            base_url=address,
            api_key=key,
            timeout=given["timeout"],
            http_client=openai.DefaultHttpxClient(
                event_hooks={"request": [self._begin_call], "response": [self._limit_call]}
            ),
        )

    def __getstate__(self) -> NoReturn:
        raise InvalidArgument(f"{self.name} counts its budget in one process and cannot be sent to another")

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        introductions = {n: rules(games.ruleset, n) for n in set(games.num_players[rows].tolist())}
        questions = [
            Question(
                introductions[int(games.num_players[game])],
                prompt(games, game, long=bool(self.settings["long"])),
                games.legal_actions(game),
            )
            for game in rows.tolist()
        ]
        if self.settings["parallel"] > 1 and len(questions) > 1:
            with ThreadPoolExecutor(self.settings["parallel"]) as pool:
                chosen = list(pool.map(self._decide, questions))
        else:
            chosen = [self._decide(question) for question in questions]
        codes = np.array([NONE if action is None else actions.encode(action) for action in chosen], np.int64)
        if (lost := codes == NONE).any():
            codes[lost] = games.sample_actions(rows[lost])
        return codes

    def close(self) -> None:
        """Closes the connections to the server."""
        self._client.close()

    def usage_report(self) -> str:
        """What was used, in a line."""
        used = self.usage
        return (
            f"{self.name}: {used.decisions:,} decisions, {used.calls:,} calls, {used.failures:,} without an answer; "
            f"{used.prompt_tokens:,} tokens read, {used.completion_tokens:,} written; "
            f"{used.illegal_answers:,} illegal answers, {used.fallbacks:,} random moves instead"
        )

    def _decide(self, question: Question) -> Action | None:
        """The move that the model chooses; None where it chooses none and a random one is to be played."""
        self._add(decisions=1)
        messages: list[Any] = [
            {"role": "system", "content": question.rules},
            {"role": "user", "content": question.text},
        ]
        wrong = ""
        for _ in range(self.settings["attempts"]):
            if not (reserved := self._reserve()):
                wrong = f"the budget is spent: {self.settings['calls']:,} calls, {self.settings['tokens']:,} tokens"
                break
            try:
                answer, whole = self._ask(messages, reserved)
            except (openai.OpenAIError, json.JSONDecodeError, UnicodeDecodeError) as error:
                status = getattr(error, "status_code", None)
                if status is not None and 400 <= status < 500 and status not in _PASSING:
                    raise ModelFailed(f"{self.name}: {error}") from None
                self._add(failures=1)
                wrong = f"the server failed: {error}"
                continue
            finally:
                with self._lock:
                    self._reserved -= reserved
            if answer is None:
                self._add(failures=1)
                wrong = "the server's answer is not a chat completion"
                continue
            try:
                if not whole or not answer.strip():
                    raise InvalidNotation(_NOTHING if whole else _CUT_OFF)
                return parse_move(answer, question.legal)
            except (InvalidNotation, IllegalAction) as error:
                self._add(illegal_answers=1)
                wrong = f"{error}."
                messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": wrong}]
        if self.settings["fallback"] == "error":
            raise ModelFailed(f"{self.name}: {wrong}")
        self._add(fallbacks=1)
        return None

    def _ask(self, messages: list[Any], most_calls: int) -> tuple[str | None, bool]:
        """The model's answer, None where there is none in what came, and whether it is whole."""
        more = {name: self.settings[name] for name in ("temperature", "max_tokens") if self.settings[name] is not None}
        client = self._client.with_options(max_retries=most_calls - 1)
        completion: Any = client.chat.completions.create(model=self.model, messages=messages, **more)
        choices = getattr(completion, "choices", None)
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = getattr(choice, "message", None)
        answer: Any = getattr(message, "content", None)
        if answer is None and message is not None:
            answer = ""  # it said nothing
        used = getattr(completion, "usage", None)
        sent = sum(len(entry["content"]) for entry in messages)
        self._add(
            prompt_tokens=_tokens(used, "prompt_tokens", sent),
            completion_tokens=_tokens(used, "completion_tokens", len(answer) if isinstance(answer, str) else 0),
        )
        if not isinstance(answer, str):
            return None, True
        return answer, getattr(choice, "finish_reason", None) != "length"

    def _reserve(self) -> int:
        """How many calls may be made for one answer; 0 if the budget is spent."""
        with self._lock:
            left = self.settings["calls"] - self.usage.calls - self._reserved
            if left <= 0 or self.usage.tokens >= self.settings["tokens"]:
                return 0
            reserved: int = min(left, 1 + self.settings["retries"])
            self._reserved += reserved
            return reserved

    def _begin_call(self, request: httpx.Request) -> None:
        self._add(calls=1)
        request.extensions["deadline"] = time.monotonic() + self.settings["timeout"]

    def _limit_call(self, response: httpx.Response) -> None:
        assert isinstance(response.stream, httpx.SyncByteStream)
        response.stream = _Timed(response.stream, response.request.extensions["deadline"])

    def _add(self, **counts: int) -> None:
        with self._lock:
            for name, count in counts.items():
                setattr(self.usage, name, getattr(self.usage, name) + count)


def _tokens(usage: Any, name: str, characters: int) -> int:
    """What the server says, or an estimate."""
    said = getattr(usage, name, None)
    return said if isinstance(said, int) and said >= 0 else -(-characters // CHARACTERS_PER_TOKEN)
