"""The person at the terminal: what is shown, what may be answered, and how they leave."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np
import pytest

from helpers import ODD_RULES, TEXT
from montecristo_agents import arena
from montecristo_agents.human import HumanAgent, PlayerLeft
from montecristo_agents.matches import Match
from montecristo_env import GameBatch, GameRecord, InvalidArgument, PublicView, Ruleset, actions, make_agent
from montecristo_env.core.constants import Decision
from montecristo_env.render.words import describe
from montecristo_env.web.move_log import move_log

WIDTH = 80
NAMES = ["Red", "Blue", "Green", "Yellow"]


def asked(games: GameBatch, *answers: str, rows: Sequence[int] = (0,)) -> tuple[list[str], str]:
    """The moves of a person who gives these answers, and all that was shown."""
    screen = io.StringIO()
    agent = HumanAgent(answers=io.StringIO("".join(f"{answer}\n" for answer in answers)), screen=screen)
    codes = agent.act(PublicView(games.copy()), np.array(rows))  # the agent follows the game that it is asked in
    return [TEXT[code] for code in codes], screen.getvalue()


def placing() -> GameBatch:
    """A game in which somebody may place adventurers."""
    games = GameBatch(1, 3, seed=0)
    while games.states["decision"][0] != Decision.PLACE:
        games.step(games.sample_actions())
    return games


# --- Answers ---------------------------------------------------------------------------------------------------------


def test_a_number_chooses_from_the_list() -> None:
    games = placing()
    legal = [str(action) for action in games.legal_actions(0)]
    assert asked(games, "2")[0] == [legal[1]]
    assert asked(games, f" {len(legal)} ")[0] == [legal[-1]]


@pytest.mark.parametrize("answer", ["enter C", "ENTER c", "  enter   C  "])
def test_the_notation_is_understood(answer: str) -> None:
    assert asked(placing(), answer)[0] == ["enter C"]


@pytest.mark.parametrize(
    "answer", ["0", "-1", "99", "9" * 5000, "1.5", "²", "enter", "enter X", "put A", "", "\x1b[31m", "\udce9"]
)
def test_a_wrong_answer_is_asked_again_and_told_what_is_allowed(answer: str) -> None:
    games = placing()
    moves, shown = asked(games, answer, "1")
    assert moves == ["enter A"]
    last = len(games.legal_actions(0))
    assert f"is not possible now. Type a number from 1 to {last}, or a move such as\n'enter A'; ? shows all" in shown
    assert shown.count("your choice") == 2
    assert "\x1b" not in shown


def test_bytes_that_are_no_text_are_asked_again() -> None:
    games = placing()
    answers = io.TextIOWrapper(Bytewise(b"caf\xe9\n1\n"), "utf-8")
    acts = HumanAgent(answers=answers, screen=io.StringIO()).act(PublicView(games), np.arange(1))
    assert [TEXT[act] for act in acts] == ["enter A"]


class Bytewise(io.BytesIO):
    """Gives a line at a time, as a terminal does."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.readline()


@pytest.mark.parametrize("answer", ["?", "help"])
def test_help_shows_every_move_in_notation(answer: str) -> None:
    games = placing()
    moves, shown = asked(games, answer, "1")
    helped = shown.split("The moves you can make now:")[1]
    assert moves == ["enter A"]
    assert all(str(action) in helped for action in games.legal_actions(0))


@pytest.mark.parametrize("answer", ["quit", "Q", " exit "])
def test_quitting_leaves_with_a_message(answer: str) -> None:
    with pytest.raises(PlayerLeft, match="the human player has left"):
        asked(placing(), answer)


def test_the_end_of_the_input_leaves_with_a_message() -> None:
    with pytest.raises(PlayerLeft, match="no more input for the human player"):
        asked(placing(), "nonsense")


def test_several_games_are_asked_in_turn() -> None:
    games = placing()[np.zeros(4, np.int64)]
    moves, shown = asked(games, "1", "enter B", "nonsense", "3", rows=(0, 2, 3))
    assert moves == ["enter A", "enter B", "enter C"]
    assert re.findall(r"^Game (\d)$", shown, re.MULTILINE) == ["0", "2", "3"]


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_plays_a_whole_game_from_a_script(num_players: int) -> None:
    games, expected = GameBatch(1, num_players, seed=5), GameBatch(1, num_players, seed=5)
    script: list[str] = []
    rng = np.random.default_rng(num_players)
    while not expected.over[0]:
        legal = expected.legal_actions(0)
        choice = int(rng.integers(len(legal)))
        script.append(str(choice + 1) if len(script) % 2 else str(legal[choice]))
        expected.step([actions.encode(legal[choice])])
    agent = HumanAgent(answers=io.StringIO("\n".join(script)), screen=io.StringIO())
    while not games.over[0]:
        games.step(agent.act(PublicView(games), np.arange(1)))
    assert games.states.tobytes() == expected.states.tobytes()


# --- The screen ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ruleset", [None, ODD_RULES])
def test_everything_fits_on_the_screen_whatever_the_position(ruleset: Ruleset | None) -> None:
    games = GameBatch(12, np.arange(12) % 3 + 2, seed=2, ruleset=ruleset)
    phases = set()
    for _ in range(120):
        for row in np.flatnonzero(~games.over).tolist():
            phases.add(games.public_state(row)["phase"])
            _, shown = asked(games, "nonsense", "?", "1", rows=(row,))
            assert max(map(len, shown.splitlines())) <= WIDTH
            assert shown.isascii()
        games.play_random(1)
    assert len(phases) == len(Decision) - 1


def test_every_choice_is_described_in_words_of_its_own() -> None:
    games = GameBatch(100, np.arange(100) % 3 + 2, seed=3)
    for _ in range(30):
        games.play_random(4)
        for row in np.flatnonzero(~games.over).tolist():
            state, legal = games.public_state(row), games.legal_actions(row)
            words = [
                describe(action, state, NAMES, games.ruleset.market, games.ruleset.card_adventurers) for action in legal
            ]
            assert len(set(words)) == len(legal)


def test_words_say_what_a_choice_brings() -> None:
    state = GameBatch(1, 3, seed=0).public_state()
    state.update(market=[1, 0, 2, 3, 4], recipient=2, current_player=0, drawn_tokens=[actions.Token(4, 1)])
    words = {
        "deal R3": "give Green R3: 3 bags of ruby, 1 adventurer",
        "visit disembark": "visit Disembark: 3 from Marseille",
        "put F": "put Diamond 1 into dungeon F",
        "take R3": "take Ruby 3, worth 9 points",
        "take E1": "take Emerald 1, worth 1 point",
        "pay W": "pay with a wild bag",
        "marble supply 3 down 2": "Supply: marble from place 4 down to 2",
        "market E up 2": "market: Emerald up 2 spaces, value 1 to 2",
    }
    for notation, expected in words.items():
        assert describe(actions.parse(notation), state, NAMES, (3, 2, 2, 1, 1), (3, 2, 1)) == expected


def test_the_rules_of_the_game_shown_are_its_own() -> None:
    games = GameBatch(1, 2, seed=1, ruleset=Ruleset(card_adventurers=(4, 5, 6), market=(3, 3, 3, 3, 1)))
    _, shown = asked(games, "1")
    assert re.search(r"^  1  keep .*, [456] adventurers$", shown, re.MULTILINE)
    assert len(re.findall(r"  3 (?:Gold|Ruby|Sapphire|Emerald|Diamond)$", shown, re.MULTILINE)) == 4


@pytest.mark.parametrize("players", [2, 3, 4])
def test_what_others_did_is_told_move_by_move(players: int) -> None:
    """All moves, forced ones too, all that is drawn and all points, as the log of a replay has them."""
    games = GameBatch(1, players, seed=5)
    record = GameRecord.record(games)
    screen = io.StringIO()
    agent = HumanAgent(answers=io.StringIO("1\n" * 400), screen=screen)
    first = None
    while not games.over[0]:
        if games.current_player[0] == 0:
            first = len(record.events) if first is None else first
            last = len(record.events)
            games.step(agent.act(PublicView(games), np.arange(1)))
        else:
            games.step(games.sample_actions())
    shown = re.sub(r"\s+", " ", "".join(re.findall(r"What happened:\n(.*?)\n\n", screen.getvalue(), re.DOTALL)))
    names = NAMES[:players]
    moments = [(position.event, position.games.public_state()) for position in record.replay()]
    told = [
        entry
        for (event, _), entries in zip(moments, move_log(moments, record.events, names, games.ruleset), strict=True)
        for entry in entries
        if first <= event < last
    ]
    assert {entry.kind for entry in told} == {"move", "forced", "chance", "score"}
    place = 0
    for entry in told:
        found = shown.find(entry.words, place)
        assert found >= 0, entry
        place = found + len(entry.words)
    assert all(f"{name}: " in shown for name in names)


def test_another_game_begins_without_news_of_the_last_one() -> None:
    screen = io.StringIO()
    agent = HumanAgent(answers=io.StringIO("1\n" * 9), screen=screen)
    games = GameBatch(1, 2, seed=5)
    games.step(agent.act(PublicView(games), np.arange(1)))
    games.play_random(30)
    for other in (games, GameBatch(1, 3, seed=6)):
        other.reset(np.zeros(1, np.int64))
        agent.act(PublicView(other), np.arange(1))
    assert "What happened" not in screen.getvalue()
    games.step(games.sample_actions())
    agent.act(PublicView(games), np.arange(1))


def test_what_is_hidden_is_not_shown() -> None:
    games = GameBatch(1, 4, seed=1)
    games.play_random(80)
    other = games.resample_hidden(np.random.default_rng(0))
    assert asked(games, "?", "1") == asked(other, "?", "1")


# --- By name, in a terminal ------------------------------------------------------------------------------------------


def test_is_made_by_name_and_has_no_settings() -> None:
    assert make_agent("human").name == "human"
    with pytest.raises(InvalidArgument, match="'human:fast' cannot be made"):
        make_agent("human:fast")


PROGRAM = """
import numpy as np
from montecristo_env import GameBatch, PublicView, make_agent
games, agent = GameBatch(1, 2, seed=0), make_agent("human")
while True:
    games.step(agent.act(PublicView(games), np.arange(1)))
"""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has other terminals")
def test_plays_in_a_terminal_in_colour_until_they_leave() -> None:
    ours, theirs = os.openpty()
    child = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = ""
    try:
        for answer in ("1", "?", "quit"):
            shown += typed(ours, answer, after="? for help): ")
        shown += until(ours, None)
        assert child.wait(timeout=600) == 1
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    assert "\x1b[" in shown and "The moves you can make now:" in shown
    last = shown.replace("\x1b[0m", "").rstrip()  # colorama, where it is installed, resets the terminal in the end
    assert last.endswith("The game ends here: the human player has left.")
    assert "Traceback" not in shown


def typed(terminal: int, answer: str, after: str) -> str:
    """Types a line once this question has come; returns what was shown before."""
    shown = until(terminal, after)
    os.write(terminal, f"{answer}\n".encode())
    return shown


def until(terminal: int, end: str | None) -> str:
    """What is shown until it ends so, or until nobody writes any more."""
    shown, deadline = b"", time.monotonic() + 600
    while time.monotonic() < deadline and (end is None or not shown.endswith(end.encode())):
        try:
            more = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
        if not more:
            break
        shown += more
    return shown.decode()


def test_a_person_plays_one_game_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_in: list[int] = []
    bars: list[bool] = []

    class Person:
        name = "person"
        interactive = True

        def act(self, view: PublicView, rows: np.ndarray) -> np.ndarray:
            asked_in.extend(rows.tolist())
            return view.action_mask(rows=rows).argmax(axis=1)

    match = Match([Person(), make_agent("greedy")], 2, np.arange(2, dtype=np.uint64))
    match.play(0, match.rounds)
    assert asked_in == sorted(asked_in) and set(asked_in) == {0, 1, 2, 3}

    progress_bar = arena._progress_bar
    monkeypatch.setattr(arena, "_progress_bar", lambda shown: bars.append(shown) or progress_bar(False))
    for agents in ([Person(), make_agent("random")], [make_agent("random"), make_agent("random")]):
        arena.play(agents, 2, deals=1, seed=0)
    assert bars == [False, True]  # none over the questions
