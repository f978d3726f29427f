"""The game in words: complete, nothing hidden in it, and moves are read from what models write."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

from helpers import ODD_RULES
from montecristo_env import GameBatch, IllegalAction, InvalidArgument, InvalidNotation, PublicView, Ruleset, actions
from montecristo_env.errors import InvalidPlayerCount
from montecristo_env.ruleset import VARIANTS
from montecristo_env.text import MOST_WORDS, TextGame, describe, list_moves, parse_move, prompt, rules
from stub_model import expected_game, moves_in, scripted

PLAYERS = pytest.mark.parametrize("num_players", [2, 3, 4])
LONG = pytest.mark.parametrize("long", [False, True])


def positions() -> list[GameBatch]:
    """Batches at many stages, for 2, 3 and 4 players."""
    batches = []
    for steps in (0, 5, 30, 77, 150, 260):
        games = GameBatch(30, np.resize([2, 3, 4], 30), seed=steps)
        games.play_random(steps)
        batches.append(games)
    return batches


# --- Positions -------------------------------------------------------------------------------------------------------


@LONG
def test_games_that_differ_only_in_what_is_hidden_have_the_same_text(long: bool) -> None:
    """§10.2."""
    rng = np.random.default_rng(0)
    for games in positions():
        others = games.resample_hidden(rng)
        assert (games.states["slot_card"] != others.states["slot_card"]).any()
        for game in range(len(games)):
            assert prompt(games, game, long=long) == prompt(others, game, long=long)


@LONG
def test_a_public_view_has_the_same_text_as_the_games(long: bool) -> None:
    games = positions()[3]
    for game in range(len(games)):
        assert prompt(PublicView(games), game, long=long) == prompt(games, game, long=long)


def at(phase: str) -> GameBatch:
    """A game of three at such a decision, some way into it."""
    games = GameBatch(1, 3, seed=2)
    games.play_random(90)
    while games.public_state(0)["phase"] != phase:
        games.play_random(1)
        games.reset()
    return games


@LONG
@pytest.mark.parametrize(
    ("field", "place", "phase"),
    [
        *((name, (), "place") for name in ("round_number", "pile_size", "cylinder", "placements_left", "zone_used")),
        *((name, 1, "place") for name in ("score", "supply", "marseille", "wilds", "current_player")),
        *((name, (1, 2), "place") for name in ("zones", "hands")),
        *((name, 3, "place") for name in ("card_discard", "unseen_cards", "bag", "token_discard")),
        ("dungeon_tokens", (2, 4), "place"),
        ("offer", 0, "deal"),
        ("recipient", (), "deal"),
        ("reinforcements_left", (), "reinforce"),
        ("drawn_tokens", 0, "put_token"),
        ("chest_dungeons", 2, "put_token"),
        ("gather_dungeon", (), "take"),
        ("gather_order", 0, "take"),
        ("gathered", (0, 5), "take"),
        ("taking", (), "pay"),
        ("left_over_bags", (0, 1), "take"),
        ("left_over_bags", (2, 1), "take"),
    ],
)
def test_every_public_fact_is_told(field: str, place: Any, phase: str, long: bool) -> None:
    games = at(phase)
    before = describe(games, seat=0, long=long)
    values = games.states[field][0:1]
    if field == "current_player":
        values[0] = (values[0] + 1) % 3
    elif field in ("recipient", "gather_order", "gather_dungeon", "cylinder", "drawn_tokens", "taking"):
        where = (0, *np.atleast_1d(place).tolist()) if place != () else (0,)
        values[where] = (values[where] + 1) % 3
    else:
        where = (0, *np.atleast_1d(place).tolist()) if place != () else (0,)
        values[where] = 1 - values[where] if field in ("zones", "zone_used", "chest_dungeons") else values[where] + 1
    assert describe(games, seat=0, long=long) != before


@LONG
@pytest.mark.parametrize("what", ["lanes", "market", "queue"])
def test_every_order_is_told(what: str, long: bool) -> None:
    games = at("place")
    state = games.public_state(0)
    before = describe(games, long=long)
    if what == "market":
        games.states["market"][0, [0, 1]] = games.states["market"][0, [1, 0]]
    elif what == "lanes":
        lane = next(number for number, lane in enumerate(state["lanes"]) if len(set(lane)) > 1)
        games.states["lanes"][0, lane, : len(state["lanes"][lane])] = (
            np.array(state["lanes"][lane][1:] + state["lanes"][lane][:1]) + 1
        )
    else:
        dungeon = next(d for d, place in enumerate(state["dungeons"]) if len(set(place["queue"])) > 1)
        places, length = games.states["places"][0, :, dungeon], len(state["dungeons"][dungeon]["queue"])
        places[places > 0] = length + 1 - places[places > 0]
        assert games.public_state(0)["dungeons"][dungeon]["queue"] == state["dungeons"][dungeon]["queue"][::-1]
    assert describe(games, long=long) != before


def test_the_long_form_is_longer_and_both_name_who_reads() -> None:
    games = GameBatch(1, 3, seed=4)
    games.play_random(50)
    short, long = describe(games, seat=2), describe(games, seat=2, long=True)
    assert len(long) > 1.5 * len(short)
    for text in (short, long):
        assert "You are Green." in text and "Green (you)" in text


def test_the_settings_of_the_game_are_told() -> None:
    games = GameBatch(1, 2, seed=0, ruleset=Ruleset(target=33, market=(3, 3, 3, 2, 1), round_limit=7))
    text = describe(games)
    assert "target 33" in text and "at most 7" in text
    assert [int(price) for price in re.findall(r"(\d)", text.split("Market prices")[1].split("\n")[0])] == [
        3,
        3,
        3,
        2,
        1,
    ]


@pytest.mark.parametrize("seat", [3, -2, 1.0, "0", True])
def test_a_seat_that_is_not_there_is_refused(seat: Any) -> None:
    with pytest.raises(InvalidArgument, match="seat must be a whole number from 0 to 2"):
        describe(GameBatch(1, 3, seed=0), seat=seat)


@LONG
def test_the_list_of_moves_has_every_legal_one_in_notation(long: bool) -> None:
    for games in positions():
        for game in np.flatnonzero(~games.over).tolist():
            legal = [str(action) for action in games.legal_actions(game)]
            assert moves_in(prompt(games, game, long=long)) == legal
            assert all(move in list_moves(games, game, long=long) for move in legal)


# --- Rules -----------------------------------------------------------------------------------------------------------


def test_the_rules_have_at_most_700_words_whatever_the_variants() -> None:
    assert MOST_WORDS == 700
    texts = set()
    for values in itertools.product(*VARIANTS.values()):
        for num_players in (None, 2, 3, 4):
            text = rules(dict(zip(VARIANTS, values, strict=True)), num_players)
            assert len(text.split()) <= MOST_WORDS
            texts.add(text)
    assert len(texts) == 4 * 2 ** len(VARIANTS)  # every variant is told


def test_the_rules_name_the_numbers_of_the_rule_set() -> None:
    text = rules(ODD_RULES)
    assert f"{ODD_RULES.target} points or more" in text and f"after {ODD_RULES.round_limit} rounds" in text
    assert ", ".join(map(str, ODD_RULES.market)) in text


def test_the_rules_show_the_notation_of_every_kind_of_move() -> None:
    text = rules().lower()
    for block in actions.BLOCKS.values():
        for code in block:
            assert str(actions.decode(code)).lower().split()[0] in text


@pytest.mark.parametrize("num_players", [1, 5, "two"])
def test_rules_for_another_number_of_players_are_refused(num_players: Any) -> None:
    with pytest.raises(InvalidPlayerCount, match="2 to 4 players"):
        rules(None, num_players)


# --- Answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", range(actions.COUNT))
def test_every_move_is_read_however_it_is_dressed(code: int) -> None:
    action = actions.decode(code)
    legal = [actions.decode(other) for other in range(actions.COUNT)]
    move = str(action)
    assert actions.parse(move) == action
    for answer in (
        move,
        move.upper(),
        f"  {move.lower()}  ",
        f"{move}.",
        f'"{move}"',
        f"[{move}]",
        f"7. {move}",
        f"7) {move}!",
        move.replace(" ", "_"),
        move.replace(" ", "  -  "),
        f"I choose: {move}",
        f"My move is {move}, since it pays.",
        f"I could also {legal[code - 1]}.\nOr wait.\nFinal answer: {move}\n",
        f"Either `{move}` or {legal[code - 1]}; the former.",
        f"<think>{legal[code - 1]}? no.</think>\n**{move}**",
    ):
        assert parse_move(answer, legal) == action, answer


@pytest.mark.parametrize(
    ("answer", "move"),
    [
        ("enter the dungeon B", "enter B"),
        ("I will enter a dungeon: enter C", "enter C"),
        ("I enter a queue with nobody in it: enter dungeon d", "enter D"),
        ("take the ruby 3", "take R3"),
        ("take R 3", "take R3"),
        ("Pay with the card G2", "pay G2"),
        ("pay with wild bag", "pay W"),
        ("give Green the card S1", "deal S1"),
        ("keep emerald 2", "deal E2"),
        ("visit the bonus zone points", "visit points"),
        ("I would like to enter A, but it is not possible, so enter B", "enter B"),
    ],
)
def test_plain_english_is_read(answer: str, move: str) -> None:
    illegal = {actions.Enter(0)} if "not possible" in answer else set()
    legal = [action for action in map(actions.decode, range(actions.COUNT)) if action not in illegal]
    assert str(parse_move(answer, legal)) == move


LEGAL = [actions.parse(move) for move in ("enter A", "enter B", "visit points", "stop placing")]


@pytest.mark.parametrize("answer", ["2", " 2.", "(2)", "Move 2", "I choose option 2", "answer: 2", "[2]"])
def test_a_number_chooses_from_the_list(answer: str) -> None:
    assert parse_move(answer, LEGAL) == actions.Enter(1)


@pytest.mark.parametrize(
    "answer", ["", "   ", "\n\n", "pass", "enter", "enter X", "place one in the first dungeon", "é"]
)
def test_an_answer_without_a_move_is_refused_with_what_is_legal(answer: str) -> None:
    with pytest.raises(
        InvalidNotation, match=r"names no move; legal are: enter A, enter B, visit points, stop placing$"
    ):
        parse_move(answer, LEGAL)


@pytest.mark.parametrize("answer", [None, 3, b"enter A", ["enter A"]])
def test_what_is_no_text_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidNotation, match=r"an answer is a text, not \w+; legal are: enter A"):
        parse_move(answer, LEGAL)


@pytest.mark.parametrize(
    ("answer", "named"), [("enter C", "enter C may not"), ("9", "no move number 9"), ("0", "no move number 0")]
)
def test_a_move_that_is_not_legal_is_refused_by_name(answer: str, named: str) -> None:
    with pytest.raises(IllegalAction, match=f"{named}.*legal are: enter A"):
        parse_move(answer, LEGAL)


def test_an_answer_that_names_two_moves_is_refused() -> None:
    with pytest.raises(InvalidNotation, match="names enter A and enter B: name one"):
        parse_move("enter A rather than enter B", LEGAL)


def test_a_later_illegal_move_counts_before_an_earlier_legal_one() -> None:
    with pytest.raises(IllegalAction, match="enter C may not be played"):
        parse_move("enter A is weak.\nI play enter C", LEGAL)


def test_what_a_model_thinks_aloud_does_not_count() -> None:
    answer = "<think>**enter A** looks good, [enter C] is better.\nenter C it is.</think>\n\nenter B"
    assert parse_move(answer, LEGAL) == actions.Enter(1)
    with pytest.raises(InvalidNotation, match="names no move"):
        parse_move("<think>enter A</think>", LEGAL)


def test_an_endless_answer_is_read_from_its_end() -> None:
    assert parse_move("enter B\n" + "hm " * 100_000 + "\nenter A", LEGAL) == actions.Enter(0)
    with pytest.raises(InvalidNotation, match="names no move"):
        parse_move("enter " * 100_000, LEGAL)


# --- Whole games -----------------------------------------------------------------------------------------------------


@LONG
@PLAYERS
def test_scripted_answers_play_the_games_of_the_batch(num_players: int, long: bool) -> None:
    for seed in range(3):
        expected = expected_game(num_players, seed, long=long, reward="rank")
        game = TextGame(num_players, seed, reward="rank", long=long)
        while not game.over:
            assert game.rewards == [0.0] * num_players
            game.play(scripted(game.prompt()))
        assert game.games.states.tobytes() == expected.states.tobytes()
        assert game.rewards == expected.rewards[0, :num_players].tolist()
        assert game.prompt().startswith("The game is over: ") and game.legal_moves == []


def test_a_bad_answer_changes_nothing() -> None:
    game = TextGame(2, seed=3)
    before, asked = game.games.states.tobytes(), game.prompt()
    for answer in ("nonsense", "99", "stop taking"):
        with pytest.raises((InvalidNotation, IllegalAction)):
            game.play(answer)
        assert game.games.states.tobytes() == before and game.prompt() == asked


def test_a_prompt_tells_what_the_others_did_since() -> None:
    game = TextGame(3, seed=1)
    log: list[tuple[int, str]] = []
    told = 0
    for _ in range(150):
        seat = game.current_player
        last = max((place for place, (who, _) in enumerate(log) if who == seat), default=-1)
        since = log[last + 1 :]
        first = game.prompt().split("\n")[0]
        names = ("Red", "Blue", "Green")
        if since:
            told += 1
            assert first == f"Since your last move: {', '.join(f'{names[who]} {move}' for who, move in since)}."
        else:
            assert first.startswith("Round ")
        log.append((seat, str(game.play(scripted(game.prompt())))))
    assert told > 20


def test_opponents_play_the_other_seats() -> None:
    game = TextGame(3, seed=1, opponents=("random", "random"), seat=1)
    while not game.over:
        assert game.current_player == 1
        game.play(scripted(game.prompt()))
    again = TextGame(3, seed=1, opponents=("random", "random"), seat=1)
    while not again.over:
        again.play(scripted(again.prompt()))
    assert game.games.states.tobytes() == again.games.states.tobytes()


@pytest.mark.parametrize("opponents", ["random", ("random",), ("random",) * 3])
def test_too_many_or_too_few_opponents_are_refused(opponents: Any) -> None:
    with pytest.raises(InvalidArgument, match="opponents must be none or 2 agents"):
        TextGame(3, opponents=opponents)


def test_whoever_forfeits_loses_what_the_others_win() -> None:
    assert TextGame(2).forfeit(1) == [1.0, -1.0]
    assert TextGame(4).forfeit(0) == pytest.approx([-1.0, 1 / 3, 1 / 3, 1 / 3])
