"""The picture of the board: all of the public state and nothing else, inside the lines, in every output."""

from __future__ import annotations

import copy
import inspect
import json
import re
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from montecristo_env import GameBatch, InvalidArgument, Lane, Ruleset, Zone, render
from montecristo_env.agent import PublicView
from montecristo_env.core.actions import DUNGEON_LETTERS, KIND_LETTERS
from montecristo_env.core.constants import MOST_CARDS_HELD, Decision
from montecristo_env.render import Drawing, Games, Window
from montecristo_env.render.board import draw_board
from montecristo_env.render.markup import to_svg
from montecristo_env.render.primitives import ANCHORS, Box, Group, Item, Text, columns, fit, text_width
from montecristo_env.render.raster import to_pixels
from montecristo_env.render.text import to_text
from montecristo_env.render.words import code, sentence

State = dict[str, Any]
SVG = "{http://www.w3.org/2000/svg}"
WIDE_NAMES = ["M" * 40, "Ünal Überläufer Ölmühle", "伯爵伯爵伯爵伯爵伯爵伯爵", "<&> \"'\x1b[31m\x00\ud800"]


# --- States ----------------------------------------------------------------------------------------------------------


@cache
def played() -> dict[str, State]:
    """One state of each kind of decision for every number of players, and some more from all over random games."""
    states: dict[str, State] = {}
    for n in (2, 3, 4):
        games = GameBatch(7, n, seed=n)
        for step in range(300):
            state = games.public_state(step % len(games))
            states.setdefault(f"{n} players, {state['phase']}", state)
            if step % 12 == 0:
                states[f"{n} players, step {step}"] = state
            games.step(games.sample_actions())
        games.play_random(10_000)
        states[f"{n} players, over"] = games.public_state(0)
    return states


def empty(n: int) -> State:
    """A state with all adventurers in Marseille and nothing drawn."""
    state = GameBatch(1, n, seed=0).public_state()
    state.update(supply=[0] * n, marseille=[9] * n, offer=[], recipient=-1)
    state.update(phase="rearrange", cylinder=Lane.REARRANGE)
    return state


@cache
def extreme() -> dict[str, State]:
    """States that play hardly ever reaches."""
    states = {}
    for n in (2, 3, 4):
        for length in (1, 7, 8, 9, 15, 16, 20, 25, 9 * n):
            state = empty(n)
            queue = [seat % n for seat in range(min(length, 9 * n))]
            for dungeon in state["dungeons"]:
                dungeon["queue"] = queue  # more than there are, so that each dungeon is tried
            state["marseille"] = [0] * n
            states[f"{n} players, queues of {length}"] = state
        state = empty(n)
        state["hands"] = [[(kind % 5, 3) for kind in range(MOST_CARDS_HELD - seat)] for seat in range(n)]
        state["wilds"] = list(range(n))
        state["gathered"] = [[(kind % 5, 2) for kind in range(9 - seat)] for seat in range(n)]
        state["scores"] = [12345, 0, 103, 40][:n]
        state["supply"], state["marseille"] = [9, 0, 9, 0][:n], [0, 9, 0, 9][:n]
        state["round"] = 10_000
        state["zones"] = [list(range(n))] * 4
        state["lanes"] = [[seat % n for seat in range(7)]] * 4
        for dungeon in state["dungeons"]:
            dungeon["tokens"] = [(0, 3), (1, 3), (3, 3), (4, 3)]
        states[f"{n} players, everything full"] = state
        state = copy.deepcopy(state)
        state.update(phase="over", current_player=-1, winners=list(range(n)))
        states[f"{n} players, all win"] = state
        state = copy.deepcopy(empty(n))
        state.update(phase="pay", gather_dungeon=5, gather_order=list(range(n)), taking=(2, 3), current_player=n - 1)
        state["left_over_bags"] = [[2, 2, 1, 2, 2], *([0] * 5 for _ in range(n - 1))]
        states[f"{n} players, paying"] = state
        states[f"{n} players, taking"] = {**state, "phase": "take", "taking": None, "left_over_bags": [[2] * 5] * n}
        state = copy.deepcopy(state)
        state.update(phase="put_token", gather_dungeon=-1, gather_order=[], taking=None, cylinder=Lane.CHEST)
        state.update(drawn_tokens=[(0, 3), (3, 3), (4, 3)], chest_dungeons=list(range(6)))
        states[f"{n} players, chest"] = state
        state = empty(n)
        state.update(wilds=[MOST_CARDS_HELD] * n, lanes=[[], [], [], []])
        states[f"{n} players, wild bags only, no marbles"] = state
    return states


def everything() -> dict[str, State]:
    return played() | extreme()


def seats(state: State) -> int:
    return len(state["scores"])


# --- The picture stays inside the lines ------------------------------------------------------------------------------


@cache
def real_width(text: str, size: float) -> float:
    """How wide a text is in pygame's own font."""
    freetype = pytest.importorskip("pygame.freetype", reason="text is measured with pygame's font")
    freetype.init()
    finer = 4
    return float(freetype.Font(None).get_rect(text, size=size * finer).width) / finer


def real_box(text: Text) -> Box:
    width = real_width(text.text, text.size)
    left = text.x - width * ANCHORS[text.anchor]
    return left, text.box[1], left + width, text.box[3]


def inside(inner: Box, outer: Box, slack: float = 0.01) -> bool:
    return (
        inner[0] >= outer[0] - slack
        and inner[1] >= outer[1] - slack
        and inner[2] <= outer[2] + slack
        and inner[3] <= outer[3] + slack
    )


def apart(one: Box, other: Box) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


@pytest.mark.parametrize("names", [None, WIDE_NAMES], ids=["colours", "wide names"])
def test_everything_lies_inside_its_frame(names: list[str] | None) -> None:
    for label, state in everything().items():
        drawing = draw_board(state, names=names and names[: seats(state)], target=10_000)
        assert all(inside(shape.box, (0, 0, drawing.width, drawing.height)) for shape in drawing.shapes()), label
        for group in drawing.groups():
            for item in group.items[1:]:
                assert inside(item.box, group.box), f"{label}: {item} leaves {group.items[0]}"


def test_no_two_things_overlap() -> None:
    for label, state in everything().items():
        drawing = draw_board(state)
        for group in drawing.groups():
            inner = [item for item in group.items if isinstance(item, Group | Text)]
            for one, other in combinations(inner, 2):
                assert apart(one.box, other.box), f"{label}: {one} over {other}"


@pytest.mark.parametrize("names", [None, WIDE_NAMES[:2] * 2], ids=["colours", "wide names"])
def test_text_fits_by_the_widths_of_the_real_font(names: list[str] | None) -> None:
    for label, state in everything().items():
        drawing = draw_board(state, names=names and names[: seats(state)], target=10_000)
        boxes = []
        for group in drawing.groups():
            for text in group.items:
                if isinstance(text, Text):
                    boxes.append(real_box(text))
                    assert inside(boxes[-1], group.box), f"{label}: {text} leaves {group.items[0]}"
        table = np.array(boxes)
        across = (table[:, None, 0] < table[None, :, 2]) & (table[None, :, 0] < table[:, None, 2])
        down = (table[:, None, 1] < table[None, :, 3]) & (table[None, :, 1] < table[:, None, 3])
        assert (across & down).sum() == len(boxes), f"{label}: texts overlap"


def test_text_is_about_as_wide_as_thought() -> None:
    for words in ("Adventurers", "Red may place up to 3 adventurers", "Marseille 9", "0123456789", "WMiljé…"):
        assert real_width(words, 20) == pytest.approx(text_width(words, 20), rel=0.06)


def test_text_that_does_not_fit_is_made_smaller_then_cut() -> None:
    text = Text(0, 0, "Edmond Dantès", 20, "#000000")
    assert fit(text, 1000, 10) == text
    smaller = fit(text, 100, 10)
    assert smaller.text == text.text and 10 <= smaller.size < 20
    cut = fit(text, 40, 10)
    assert cut.size == 10 and cut.text.endswith("…") and text_width(cut.text, cut.size) <= 40


def test_no_text_is_too_small_to_read() -> None:
    for state in everything().values():
        texts = [shape for shape in draw_board(state).shapes() if isinstance(shape, Text)]
        bags = re.compile(r"([GRSED]\d ?){3,}")  # left-over bags of three kinds and more, which hardly ever occur
        assert min(text.size for text in texts if not bags.fullmatch(text.text)) >= 13.9
        assert min(text.size for text in texts) >= 9


# --- Every public fact, exactly once ---------------------------------------------------------------------------------


def placed(items: Sequence[Item], where: str = "") -> Iterator[tuple[str, Group]]:
    """Every piece with the nearest target around it, in the order drawn."""
    for item in items:
        if isinstance(item, Group):
            if item.piece:
                yield where, item
            yield from placed(item.items, item.target or where)


def expected(state: State) -> Counter[tuple[str, str, str]]:
    """Where (the target around it), own target and name of every piece."""
    pieces: Counter[tuple[str, str, str]] = Counter()
    for letter, dungeon in zip(DUNGEON_LETTERS, state["dungeons"], strict=True):
        here = f"dungeon-{letter}"
        pieces.update((here, f"token-{letter}-{code(token)}", f"token-{code(token)}") for token in dungeon["tokens"])
        pieces.update((here, "", f"adventurer-{seat}") for seat in dungeon["queue"])
    for zone in Zone:
        pieces.update((f"zone-{zone.name.lower()}", "", f"adventurer-{seat}") for seat in state["zones"][zone])
    for lane in Lane:
        name = lane.name.lower()
        for position, seat in enumerate(state["lanes"][lane]):
            pieces[f"lane-{name}", f"marble-{name}-{position}", f"marble-{seat}"] += 1
    pieces.update(("", f"market-{KIND_LETTERS[kind]}", f"marker-{KIND_LETTERS[kind]}") for kind in state["market"])
    pieces.update(("", f"offer-{code(card)}", f"card-{code(card)}") for card in state["offer"])
    pieces.update(("", f"drawn-{code(token)}", f"token-{code(token)}") for token in state["drawn_tokens"])
    for seat in range(seats(state)):
        here = f"player-{seat}"
        pieces[here, "", f"adventurer-{seat}"] += state["supply"][seat] + state["marseille"][seat]
        pieces.update((here, f"hand-{seat}-{code(card)}", f"card-{code(card)}") for card in state["hands"][seat])
        pieces[here, f"hand-{seat}-W", "card-W"] += state["wilds"][seat]
        won = state["gathered"][seat]
        pieces.update((here, f"gathered-{seat}-{code(token)}", f"token-{code(token)}") for token in won)
    return +pieces


def test_every_piece_is_drawn_once_where_it_is() -> None:
    for label, state in everything().items():
        drawn = Counter((where, group.target, group.piece) for where, group in placed(draw_board(state).items))
        assert drawn == expected(state), label


def by_target(drawing: Drawing, target: str) -> Group:
    (found,) = [group for group in drawing.groups() if group.target == target]
    return found


def texts(group: Group) -> list[str]:
    return [shape.text for shape in Drawing(0, 0, "", group.items).shapes() if isinstance(shape, Text)]


def test_queues_lanes_and_market_keep_their_order() -> None:
    for state in everything().values():
        drawing = draw_board(state)
        for letter, dungeon in zip(DUNGEON_LETTERS, state["dungeons"], strict=True):
            pawns = [item for item in by_target(drawing, f"dungeon-{letter}").items if isinstance(item, Group)]
            queue = [pawn for pawn in pawns if pawn.piece.startswith("adventurer")]
            in_reading_order = sorted(queue, key=lambda pawn: (round(pawn.box[1]), pawn.box[0]))
            assert [int(pawn.piece[-1]) for pawn in in_reading_order] == dungeon["queue"]
        for lane in Lane:
            marbles = [g for g in by_target(drawing, f"lane-{lane.name.lower()}").items if isinstance(g, Group)]
            lowest_first = sorted(marbles, key=lambda marble: -marble.box[1])
            assert [int(marble.piece[-1]) for marble in lowest_first] == state["lanes"][lane]
        markers = sorted((g for g in drawing.groups() if g.piece.startswith("marker")), key=lambda g: g.box[1])
        assert [marker.piece[-1] for marker in markers] == [KIND_LETTERS[kind] for kind in state["market"]]


def test_numbers_are_shown() -> None:
    for state in everything().values():
        drawing = draw_board(state, market_values=(9, 8, 7, 6, 5), target=77)
        shown = [shape.text for shape in drawing.shapes() if isinstance(shape, Text)]
        assert f"Round {state['round']}  ·  77 points end the game" in shown
        for place, kind in enumerate(state["market"]):
            assert str(9 - place) in texts(by_target(drawing, f"market-{KIND_LETTERS[kind]}"))
        for seat, score in enumerate(state["scores"]):
            panel = texts(by_target(drawing, f"player-{seat}"))
            assert {str(score), f"Supply {state['supply'][seat]}", f"Marseille {state['marseille'][seat]}"} <= {*panel}
        heaps = [texts(group) for group in drawing.groups() if {"pile", "bag"} & {*texts(group)} and not group.target]
        cards, tokens = sorted((heap for heap in heaps if len(heap) == 5), key=lambda heap: heap[0])
        assert cards == ["Cards", str(state["pile_size"]), "pile", str(len(state["card_discard"])), "discards"]
        assert tokens == ["Tokens", str(len(state["bag"])), "bag", str(len(state["token_discard"])), "discards"]


def test_offered_cards_show_their_adventurers() -> None:
    state = played()["4 players, deal"]
    drawing = draw_board(state, card_adventurers=(9, 8, 7))
    for kind, bags in state["offer"]:
        groups = [group for group in drawing.groups() if group.target == f"offer-{code((kind, bags))}"]
        assert texts(groups[0]) == [KIND_LETTERS[kind], str(bags), str(10 - bags)]


def test_nothing_hidden_is_drawn() -> None:
    games = GameBatch(8, 3, seed=5)
    games.play_random(100)
    other = games.resample_hidden(np.random.default_rng(0))
    assert all(draw_board(games.public_state(row)) == draw_board(other.public_state(row)) for row in range(8))


def test_drawing_changes_nothing_and_json_is_enough() -> None:
    for state in everything().values():
        before = copy.deepcopy(state)
        drawing = draw_board(state)
        assert state == before
        assert draw_board(json.loads(json.dumps(state))) == drawing
        assert to_text(json.loads(json.dumps(state))) == to_text(state)


# --- Words -----------------------------------------------------------------------------------------------------------


def said(state: State, **changes: Any) -> str:
    changed = {**state, **changes}
    title = draw_board(changed).title
    assert title.replace(" ", "") in to_text(changed, colour=False).replace("\n", "").replace(" ", "")
    return title


def test_every_decision_is_said_in_plain_words() -> None:
    state = empty(3)
    state.update(active_player=1, current_player=1)
    offer = [(1, 2), (0, 1), (4, 3)]
    assert said(state, phase="deal", offer=offer, recipient=1) == "Blue chooses a card to keep"
    assert said(state, phase="deal", offer=offer[2:], recipient=0) == "Blue gives Red a card"
    assert said(state, phase="discard", current_player=2) == "Green has too many cards and discards one"
    placing = {"phase": "place", "placements_left": 3}
    assert said(state, **placing) == "Blue may place up to 3 adventurers, at most one in a bonus zone"
    assert said(state, **placing, zone_used=True) == "Blue may place up to 3 adventurers in dungeons"
    placing["placements_left"] = 1
    assert said(state, **placing) == "Blue may place 1 adventurer in a dungeon or a bonus zone"
    assert said(state, **placing, zone_used=True) == "Blue may place 1 adventurer in a dungeon"
    assert said(state, phase="reinforce", reinforcements_left=2) == "Blue may send up to 2 reinforcements to dungeons"
    assert said(state, phase="put_token", drawn_tokens=[(1, 3), (0, 1)]) == "Blue puts Ruby 3 into a dungeon"
    gathering = {"gather_dungeon": 2, "gather_order": [1, 0], "left_over_bags": [[0] * 5, [0, 1, 0, 0, 0], [0] * 5]}
    assert said(state, phase="take", **gathering) == "Blue may take a token from dungeon C"
    paying = {**gathering, "phase": "pay", "taking": (1, 3)}
    assert said(state, **paying) == "Blue pays for Ruby 3 from dungeon C: 2 ruby bags owed"
    paying["taking"] = (1, 2)
    assert said(state, **paying) == "Blue pays for Ruby 2 from dungeon C: 1 ruby bag owed"
    assert said(state, phase="rearrange") == "Blue may move an own marble down or a market marker up"
    assert said(state, phase="return_marble") == "Blue puts the used marble on top of another lane"
    end = {"phase": "over", "current_player": -1, "scores": [41, 41, 40]}
    assert said(state, **end, winners=[0]) == "Red wins with 41 points"
    assert said(state, **end, winners=[0, 1]) == "Red and Blue share the win with 41 points"
    assert said(state, **end, winners=[0, 1, 2]) == "Red, Blue and Green share the win with 41 points"
    assert said(state, **end, winners=[]) == "The game is over"


def test_the_words_fit_real_games() -> None:
    assert {state["phase"] for state in played().values()} == {decision.name.lower() for decision in Decision}
    for state in played().values():
        if state["current_player"] >= 0:
            assert sentence(state, "WXYZ").startswith("WXYZ"[state["current_player"]])


def test_who_gets_the_card_is_said_as_it_is() -> None:
    games = GameBatch(16, 4, seed=3)
    for _ in range(400):
        for row in np.flatnonzero(games.states["decision"] == Decision.DEAL).tolist():
            dealer, recipient = (int(games.states[name][row]) for name in ("active_player", "recipient"))
            true = f"{dealer} chooses a card to keep" if recipient == dealer else f"{dealer} gives {recipient} a card"
            assert sentence(games.public_state(row), "0123") == true
            to_them = "You choose a card to keep" if recipient == dealer else f"You give {recipient} a card"
            assert sentence(games.public_state(row), "0123", [int(dealer)]) == to_them
            assert sentence(games.public_state(row), "0123", range(4)) == true  # which of them?
        games.step(games.sample_actions())


def test_names_are_shown_and_tamed() -> None:
    state = played()["4 players, place"]
    drawing = draw_board(state, names=WIDE_NAMES)
    assert "Ünal Überläufer…" in texts(by_target(drawing, "player-1"))
    assert "\x1b" not in to_svg(drawing) and "\x00" not in to_svg(drawing)
    assert "<&> \"'[31m" in texts(by_target(drawing, "player-3"))
    assert "Green" in texts(by_target(draw_board(state, names=["a", "b", " \x07", "d"]), "player-2"))


# --- SVG and HTML ----------------------------------------------------------------------------------------------------


def test_svg_is_xml_with_all_targets() -> None:
    for label, state in everything().items():
        drawing = draw_board(state, names=WIDE_NAMES[: seats(state)])
        text = to_svg(drawing)
        root = ET.fromstring(text.encode())
        assert root.tag == f"{SVG}svg" and root.get("viewBox") == f"0 0 {drawing.width} {drawing.height}"
        assert root.findtext(f"{SVG}title") == drawing.title
        for attribute, kind in (("data-target", "target"), ("data-piece", "piece")):
            found = Counter(name for element in root.iter() if (name := element.get(attribute)))
            names = [getattr(group, kind) for group in drawing.groups()]
            assert found == Counter(filter(None, names)), label
        shapes = [element for element in root.iter() if element.tag not in (f"{SVG}svg", f"{SVG}g", f"{SVG}title")]
        assert len(shapes) == len(list(drawing.shapes()))
        written = [element.text for element in shapes if element.tag == f"{SVG}text"]
        assert written == [shape.text for shape in drawing.shapes() if isinstance(shape, Text)]
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")  # nothing from elsewhere


@pytest.mark.parametrize("seen", [lambda games: games, PublicView], ids=["games", "view"])
def test_all_outputs_show_a_game_of_a_batch_by_its_own_rules(seen: Callable[[GameBatch], Games]) -> None:
    rules = Ruleset(market=(3, 3, 2, 2, 1), card_adventurers=(0, 4, 2), target=25)
    games = GameBatch(3, 2, seed=0, ruleset=rules)
    games.play_random(20)
    shown, names = seen(games), ["Ada", "Bo"]
    settings = {"names": names, "market_values": rules.market, "card_adventurers": rules.card_adventurers}
    drawing = draw_board(games.public_state(2), target=25, **settings)
    assert render.draw(shown, 2, names=names) == drawing != render.draw(shown, 0, names=names)
    assert render.svg(shown, 2, names=names) == to_svg(drawing)
    assert render.html(shown, 2, names=names) == f'<div style="max-width: 1280px">{to_svg(drawing)}</div>'
    assert render.ansi(shown, 2, names=names, colour=False) == to_text(games.public_state(2), colour=False, **settings)


def test_the_outputs_are_called_alike() -> None:
    for output in (render.draw, render.svg, render.html, render.ansi, render.rgb_array):
        first = list(inspect.signature(output).parameters.values())[:3]
        assert [(p.name, p.kind) for p in first] == [
            ("games", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            ("game", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            ("names", inspect.Parameter.KEYWORD_ONLY),
        ]
        for wrong in (GameBatch(1).public_state(), None, "games"):
            with pytest.raises(InvalidArgument, match="games must be a GameBatch or a PublicView"):
                output(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="a game is a whole number from 0 to 0, not 1"):
            output(GameBatch(1), 1)


# --- Text ------------------------------------------------------------------------------------------------------------

CODES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("names", [None, WIDE_NAMES], ids=["colours", "wide names"])
def test_no_line_is_wider_than_eighty_columns(names: list[str] | None) -> None:
    for label, state in everything().items():
        coloured = to_text(state, names=names and names[: seats(state)])
        plain = to_text(state, names=names and names[: seats(state)], colour=False)
        assert "\x1b" in coloured and "\x1b" not in plain and CODES.sub("", coloured) == plain
        assert max(map(columns, plain.splitlines())) <= 80, label
        assert all(line == line.rstrip() for line in plain.splitlines())


def test_text_tells_every_public_fact() -> None:
    for label, state in everything().items():
        lines = to_text(state, market_values=(9, 8, 7, 6, 5), colour=False).splitlines()
        top = next(number for number, line in enumerate(lines) if line.startswith("Castle"))
        castle = [line[:46].rstrip() for line in lines[top + 1 :]]
        for letter, dungeon in zip(DUNGEON_LETTERS, state["dungeons"], strict=True):
            tokens = " ".join([*map(code, dungeon["tokens"]), *["--"] * (4 - len(dungeon["tokens"]))])
            queue = "".join("RBGY"[seat] for seat in dungeon["queue"])
            row = castle.pop(0)[2:]
            while castle[0].startswith(" " * 17):  # a long queue
                row += castle.pop(0).strip()
            assert row == f"{letter} {tokens}  {queue}".rstrip(), label
        for lane in Lane:
            column = "".join(lines[top + 1 + row][47 + 5 * lane] for row in reversed(range(7)))
            assert column.rstrip(".") == "".join("RBGY"[seat] for seat in state["lanes"][lane]), label
        assert lines[top + 8][46 + 5 * state["cylinder"] :].startswith("===")
        for space, kind in enumerate(state["market"]):
            assert f"{9 - space} {('Gold', 'Ruby', 'Sapphire', 'Emerald', 'Diamond')[kind]}" in lines[top + 1 + space]
        zones = " ".join(castle[:2])
        for zone, name in zip(Zone, ("Wild bag", "Disembark", "Bonus points", "Reinforcement"), strict=True):
            assert f"{name} {''.join('RBGY'[seat] for seat in state['zones'][zone]) or '-'} " in f"{zones} "
        text = "\n".join(lines)
        cards, tokens = len(state["card_discard"]), len(state["token_discard"])
        assert (
            f"pile {state['pile_size']}, discards {cards}   Tokens: bag {len(state['bag'])}, discards {tokens}" in text
        )
        for card in state["offer"]:
            assert f"{code(card)} with" in text
        assert not state["drawn_tokens"] or f"next first: {' '.join(map(code, state['drawn_tokens']))}" in text
        players = lines[-2 * seats(state) :]
        for seat in range(seats(state)):
            head, hand = players[2 * seat : 2 * seat + 2]
            assert f" {state['scores'][seat]} points " in head
            assert f"{state['supply'][seat]} in supply   {state['marseille'][seat]} in Marseille" in head
            cards_held = " ".join([*map(code, state["hands"][seat]), *"W" * state["wilds"][seat]]) or "no cards"
            assert f"hand {cards_held}  " in f"{hand}  "
            won = " ".join(map(code, state["gathered"][seat]))
            assert hand.endswith(f"taken {won}") if won else "taken" not in hand


# --- Pixels and windows ----------------------------------------------------------------------------------------------


@pytest.fixture
def pygame(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module = pytest.importorskip("pygame", reason="the extra 'render' is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    module.display.quit()
    yield module
    module.quit()


def test_pixels(pygame: Any) -> None:
    state = played()["3 players, place"]
    picture = to_pixels(draw_board(state))
    assert picture.shape == (720, 1280, 3) and picture.dtype == np.uint8
    assert picture.flags.c_contiguous and picture.flags.writeable and picture.flags.owndata
    assert not pygame.display.get_init(), "pictures need no display"
    assert np.array_equal(picture, to_pixels(draw_board(state)))
    assert not np.array_equal(picture, to_pixels(draw_board(played()["3 players, take"])))
    assert to_pixels(draw_board(state), width=640).shape == (360, 640, 3)
    assert to_pixels(draw_board(state), width=1921).shape == (1081, 1921, 3)


def test_every_part_of_the_state_is_seen(pygame: Any) -> None:
    state = empty(2)
    blank = to_pixels(draw_board(state))
    changes: list[State] = [
        {"scores": [1, 0]},
        {"supply": [1, 0]},
        {"marseille": [9, 8]},
        {"wilds": [0, 1]},
        {"zones": [[], [1], [], []]},
        {"cylinder": 0},
        {"round": 2},
        {"pile_size": 1},
        {"chest_dungeons": [3]},
        {"gather_dungeon": 3},
        {"market": [4, 3, 2, 1, 0] if state["market"] != [4, 3, 2, 1, 0] else [0, 1, 2, 3, 4]},
    ]
    for change in changes:
        assert not np.array_equal(blank, to_pixels(draw_board({**state, **change}))), change


def test_pixels_survive_that_somebody_quits_pygame(pygame: Any) -> None:
    drawing = draw_board(played()["2 players, place"])
    before = to_pixels(drawing)
    pygame.quit()
    assert np.array_equal(before, to_pixels(drawing))
    pygame.quit()
    pygame.init()
    assert np.array_equal(before, to_pixels(drawing))


def test_without_pygame_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = draw_board(played()["2 players, place"])
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(ImportError, match=r"pip install 'montecristo-env\[render\]'"):
        to_pixels(drawing)
    with pytest.raises(ImportError, match=r"pip install 'montecristo-env\[render\]'"):
        Window()


def test_window_opens_updates_and_closes(pygame: Any) -> None:
    first, second = (draw_board(played()[f"2 players, {phase}"]) for phase in ("place", "take"))
    window = Window()
    assert not pygame.display.get_init(), "a window opens with the first drawing"
    window.show(first)
    surface = window._window.get_surface()
    shown = pygame.surfarray.array3d(surface).swapaxes(0, 1)
    assert np.array_equal(shown, to_pixels(first))
    window.show(second)
    assert np.array_equal(pygame.surfarray.array3d(surface).swapaxes(0, 1), to_pixels(second))
    assert not window.closed
    window.close()
    window.close()
    window.show(first)
    assert window.closed and not Window._open


def test_a_window_that_the_user_closes_stays_closed(pygame: Any) -> None:
    drawing = draw_board(played()["2 players, place"])
    one, other = Window(width=320), Window(width=320)
    one.show(drawing)
    other.show(drawing)
    pygame.event.post(pygame.event.Event(pygame.WINDOWCLOSE, window=one._window))
    other.show(drawing)
    one.show(drawing)
    assert one.closed and not other.closed
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    other.show(drawing)
    assert other.closed and not Window._open


def test_a_window_survives_that_somebody_quits_pygame(pygame: Any) -> None:
    drawing = draw_board(played()["2 players, place"])
    window = Window(width=320)
    window.show(drawing)
    pygame.quit()
    window.show(drawing)
    assert window.closed
    window = Window(width=320)
    window.show(drawing)
    pygame.quit()
    pygame.init()
    window.show(drawing)
    window.close()
    assert not Window._open


def test_a_window_keeps_its_pace(pygame: Any) -> None:
    drawing = draw_board(played()["2 players, place"])
    window = Window(width=320, fps=5)
    start = time.monotonic()
    for _ in range(3):
        window.show(drawing)
    assert time.monotonic() - start >= 2 / 5
    window.close()


# --- Bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("show", [draw_board, to_text])
def test_bad_input_is_refused(show: Any) -> None:
    state = played()["2 players, place"]
    broken: list[Any] = [None, [], GameBatch(1).states[0], {}, {key: state[key] for key in state if key != "lanes"}]
    changes: list[State] = [
        {"phase": "sleep"},
        {"phase": "deal"},
        {"phase": "pay"},
        {"phase": "put_token"},
        {"phase": "take"},
        {"current_player": -1},
        {"current_player": 2},
        {"active_player": 3},
        {"cylinder": 4},
        {"scores": [1]},
        {"scores": None},
        {"market": [0, 0, 1, 2, 3]},
        {"lanes": [[0]] * 3},
        {"lanes": [[0] * 8] * 4},
        {"lanes": [[2], [], [], []]},
        {"zones": [[0, 1, 0], [], [], []]},
        {"hands": [[(0, 1)] * 9, []]},
        {"hands": [[(5, 1)], []]},
        {"hands": [[(0, 4)], []]},
        {"hands": [["R2"], []]},
        {"wilds": [9, 0]},
        {"gathered": [[(0, 1)] * 10, []]},
        {"offer": [(0, 1)] * 3},
        {"dungeons": [{"tokens": [], "queue": [0] * 19}] * 6},
        {"dungeons": [{"tokens": [(0, 1)] * 5, "queue": []}] * 6},
        {"dungeons": [{}] * 6},
        {"supply": [10, 0]},
        {"left_over_bags": [[0] * 4] * 2},
        {"left_over_bags": [[0] * 5]},
        {"left_over_bags": [[3, 0, 0, 0, 0]] * 2},
    ]
    for bad in broken + [{**state, **change} for change in changes]:
        with pytest.raises(InvalidArgument):
            show(bad)
    for names in ("ab", ["a"], ["a", "b", "c"], [1, 2], 7):
        with pytest.raises(InvalidArgument, match="names"):
            show(state, names=names)
    for values in ((3, 2, 1), (3, 2, 2, 1, 10), (3, 2, 2, 1, -1), None, "abcde"):
        with pytest.raises(InvalidArgument, match="market_values"):
            show(state, market_values=values)
    with pytest.raises(InvalidArgument, match="card_adventurers"):
        show(state, card_adventurers=(1, 2))


def test_bad_input_of_the_outputs_is_refused(pygame: Any) -> None:
    state = played()["2 players, place"]
    for target in (0, -1, "40", 40.5):
        with pytest.raises(InvalidArgument, match="target"):
            draw_board(state, target=target)  # type: ignore[arg-type]
    for width in (0, 159, 7681, 12.5, "wide"):
        with pytest.raises(InvalidArgument, match="width"):
            to_pixels(draw_board(state), width=width)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="width"):
            Window(width=width)  # type: ignore[arg-type]
    for fps in (0, -1, float("nan"), "fast"):
        with pytest.raises(InvalidArgument, match="fps"):
            Window(fps=fps)  # type: ignore[arg-type]
    show: Any
    for show in (to_svg, to_pixels, Window().show):
        with pytest.raises(InvalidArgument, match="drawing"):
            show(state)


def test_rules_of_the_house_are_drawn() -> None:
    rules = Ruleset(market=(3, 3, 2, 2, 1), card_adventurers=(0, 4, 2), target=25)
    games = GameBatch(1, 2, seed=0, ruleset=rules)
    drawing, state = render.draw(games), games.public_state()
    assert [texts(by_target(drawing, f"market-{KIND_LETTERS[kind]}"))[0] for kind in state["market"]] == list("33221")
