"""The search with an evaluator: Gumbel root, sequential halving, hidden parts redrawn, one value per seat."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import CODE, winning_position
from montecristo_agents.search import Search, considered_visits
from montecristo_env import GameBatch, InvalidArgument, actions
from montecristo_env.core.actions import FIRST
from montecristo_env.core.constants import HIDDEN_SLOTS, NONE
from montecristo_env.core.layout import HIDDEN_FIELDS, States
from shell_helpers import run_python


class Scores:
    """An evaluator that likes actions by a fixed random table, and shares by scores; it keeps the rows it has seen."""

    def __init__(self, seed: int = 0, likes: int | None = None) -> None:
        self.logits = np.random.default_rng(seed).normal(size=actions.COUNT).astype(np.float32)
        if likes is not None:
            self.logits[:] = 0
            self.logits[likes] = 4.0
        self.seen: list[States] = []

    def evaluate(self, rows: States) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self.seen.append(rows.copy())
        seated = np.arange(4) < rows["num_players"][:, None]
        shares = np.exp(np.minimum(rows["score"], 60) / 6.0) * seated
        return np.tile(self.logits, (len(rows), 1)), (shares / shares.sum(1, keepdims=True)).astype(np.float32)


def middle_games(num_games: int, decisions: int = 60) -> GameBatch:
    """Games in the middle, with 2, 3 and 4 players."""
    games = GameBatch(num_games, np.resize([2, 3, 4], num_games), seed=1)
    games.play_random(decisions)
    return games


def keys_for(num_games: int) -> NDArray[np.uint64]:
    return np.arange(num_games, dtype=np.uint64) * np.uint64(12345)


def search(games: GameBatch, simulations: int, noise: float = 0.0, most: int = 16) -> NDArray[np.void]:
    driver = Search(len(games), Scores(), [simulations] * most, noise)
    return driver.run(games.states, keys_for(len(games))).copy()


def root_visits(driver: Search, game: int) -> list[int]:
    moves = int(driver.searches["moves"][game])
    return driver._trees[game]["visits"][1 : 1 + moves].tolist()


def test_considered_visits_follow_sequential_halving() -> None:
    assert considered_visits(1, 3) == [0, 1, 2]
    assert considered_visits(4, 8) == [0, 0, 0, 0, 1, 1, 2, 2]
    # 8 moves with 24 simulations: one try of each, then two of the best four, then what is left for the best two
    assert considered_visits(8, 24) == [0] * 8 + [1] * 4 + [2] * 4 + [3, 3, 4, 4, 5, 5, 6, 6]


@pytest.mark.parametrize(("simulations", "most"), [(1, 8), (8, 4), (24, 8), (40, 16)])
def test_visits_of_root_moves_follow_sequential_halving(simulations: int, most: int) -> None:
    games = middle_games(30)
    driver = Search(30, Scores(), [simulations] * most, noise=1.0)
    driver.run(games.states, keys_for(30))
    for game in range(30):
        visits = root_visits(driver, game)
        considered = min(len(visits), most)
        tried = [0] * len(visits)
        for wanted in considered_visits(considered, simulations):
            tried[tried.index(wanted)] += 1
        assert sorted(visits) == sorted(tried)
        chosen = driver.searches["action"][game]
        legal = np.flatnonzero(games.action_mask(rows=np.array([game]))[0])
        assert visits[legal.tolist().index(chosen)] == max(visits)


def test_results_are_probabilities_of_legal_actions_and_shares_of_those_seated() -> None:
    games = middle_games(30)
    results = search(games, 20, noise=1.0)
    np.testing.assert_allclose(results["policy"].sum(axis=1), 1)
    np.testing.assert_allclose(results["values"].sum(axis=1), 1)
    assert (results["values"][np.arange(4) >= games.num_players[:, None]] == 0).all()
    assert (results["values"] >= 0).all()
    masks = games.action_mask()
    for game, result in enumerate(results):
        first = FIRST[games.states["decision"][game]]
        for choice in np.flatnonzero(result["policy"]):
            assert masks[game, first + choice]
        assert masks[game, result["action"]]


def test_rows_that_differ_only_in_what_is_hidden_give_the_same_search() -> None:
    for decisions in (0, 60, 120):
        games = middle_games(20, decisions)
        others = games.resample_hidden(np.random.default_rng(decisions))
        assert (games.states["slot_card"] != others.states["slot_card"]).any()
        assert (games.states["bag_order"] != others.states["bag_order"]).any()
        assert search(games, 40).tobytes() == search(others, 40).tobytes()


def test_hidden_fields_of_roots_are_never_read() -> None:
    games = middle_games(20)
    poisoned = games.copy()
    rng = np.random.default_rng(0)
    for name in ("seed", "cards_key", "tokens_key", "play_key"):
        poisoned.states[name] = rng.integers(2**63, size=20, dtype=np.uint64)
    for name in ("bag_order", "scratch"):
        poisoned.states[name] = rng.integers(-128, 128, poisoned.states[name].shape)
    for row in poisoned.states:  # of the cards, only which ones come from each shuffle is public: their order is not
        for tag in range(NONE, HIDDEN_SLOTS):
            alike = np.flatnonzero(row["slot_shuffle"] == tag)
            row["slot_card"][alike] = 99 if tag == NONE else row["slot_card"][alike[::-1]]
    covered = {"seed", "cards_key", "tokens_key", "play_key", "bag_order", "scratch", "slot_card", "bytes"}
    assert covered == set(HIDDEN_FIELDS)
    assert search(games, 40).tobytes() == search(poisoned, 40).tobytes()


def test_simulations_see_redrawn_piles_the_same_for_the_same_try_of_every_move() -> None:
    games = middle_games(1, 0)
    evaluator = Scores()
    driver = Search(1, evaluator, [8] * 2)
    driver.run(games.states, keys_for(1))
    seeds = [int(rows["seed"][0]) for rows in evaluator.seen[1:]]  # the first is the root
    assert seeds[0::2] == seeds[1::2]  # the first tries of two moves, then the second ones …
    assert len(set(seeds)) == 4 and int(games.states["seed"][0]) not in seeds


def test_searching_leaves_the_rows_as_they_are() -> None:
    games = middle_games(10)
    before = games.states.tobytes()
    search(games, 10)
    assert games.states.tobytes() == before


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_best_response_lets_others_play_what_the_evaluator_likes_best(players: int) -> None:
    games = GameBatch(20, players, seed=3)
    games.play_random(40)
    evaluator = Scores()
    driver = Search(20, evaluator, [24] * 8, best_response=True)
    driver.start(np.arange(20), games.states, keys_for(20))
    seat, answered = games.current_player, 0
    driver.tick()  # the roots
    for _ in range(1000):
        done, before = driver.searches["done"].copy(), driver.searches["simulations"].copy()
        driver.tick()
        rows = evaluator.seen[-1]
        for game in np.flatnonzero(~done):
            others = rows["current_player"][game] not in (seat[game], NONE)
            assert driver.searches["halfway"][game] == others
            assert driver.searches["simulations"][game] == before[game] + (not others)
            if others:
                view = GameBatch(1, players, seed=0)
                view.states[:] = rows[game]
                mask = view.action_mask()[0] != 0
                view.step([np.where(mask, evaluator.logits, -np.inf).argmax()])
                assert driver._leaves[game : game + 1].tobytes() == view.states.tobytes()
                answered += 1
        if driver.searches["done"].all():
            break
    assert driver.searches["done"].all() and answered > 500
    for game in range(20):  # only own moves are in the tree
        used = driver._trees[game][1 : driver.searches["nodes"][game]]
        assert set(used["move"] % 4) == {seat[game]}


def test_finds_the_move_that_wins_at_once_though_the_evaluator_likes_another() -> None:
    table = winning_position()
    likes_another = Scores(likes=CODE["stop taking"])
    driver = Search(1, likes_another, [64] * 16)
    result = driver.run(table.games.states, keys_for(1))[0]
    assert result["action"] == CODE["take R3"]
    assert result["policy"][CODE["take R3"] - actions.BLOCKS["take"].start] > 0.9
    assert result["values"][0] > 0.7


def test_one_simulation_plays_the_likeliest_move() -> None:
    games = middle_games(30)
    logits = np.where(games.action_mask(), Scores().logits, -np.inf)
    np.testing.assert_array_equal(search(games, 1)["action"], logits.argmax(axis=1))


def test_noise_changes_which_moves_are_considered_and_follows_from_the_keys() -> None:
    games = middle_games(30)
    quiet, noisy = search(games, 4, most=2), search(games, 4, noise=1.0, most=2)
    assert (quiet["action"] != noisy["action"]).any()
    assert noisy.tobytes() == search(games, 4, noise=1.0, most=2).tobytes()


def test_games_go_on_by_themselves() -> None:
    games = middle_games(12)
    driver = Search(12, Scores(), [2 + 2 * moves for moves in range(1, 9)], noise=1.0)
    driver.start(np.arange(12), games.states, keys_for(12))
    for _ in range(7):
        driver.tick()
    early = np.flatnonzero(driver.searches["done"])
    assert 0 < early.size < 12
    driver.start(early, games.states[early], keys_for(12)[early])
    while not driver.searches["done"].all():
        driver.tick()
    alone = Search(12, Scores(), [2 + 2 * moves for moves in range(1, 9)], noise=1.0)
    results = alone.run(games.states, keys_for(12))
    for name in ("action", "policy", "values"):
        np.testing.assert_array_equal(driver.searches[name], results[name])


def test_a_game_that_is_over_needs_no_search() -> None:
    games = GameBatch(2, seed=0)
    games.play_random(100_000)
    assert games.over.all()
    assert (search(games, 4)["action"] == NONE).all()


@pytest.mark.parametrize(("size", "budgets"), [(0, [1]), (1, []), (1, [4, 0])])
def test_a_search_without_games_or_simulations_is_refused(size: int, budgets: list[int]) -> None:
    with pytest.raises(InvalidArgument, match="a search needs a game or more"):
        Search(size, Scores(), budgets)


def test_compiled_and_interpreted_search_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = search(middle_games(3), 6, noise=1.0)["action"]
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = run_python(
        "import sys; sys.path.insert(0, 'tests')\n"
        "from test_search import middle_games, search\n"
        "print(*search(middle_games(3), 6, noise=1.0)['action'])\n"
    )
    assert done.stdout.split() == [str(action) for action in compiled], done.stderr
