"""The game in OpenSpiel: its own tests and algorithms run on it, and its chance nodes have the true odds."""

from __future__ import annotations

import copy
import math
import pickle
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from montecristo_env import GameBatch, IllegalAction, InvalidPlayerCount, MonteCristoError, Ruleset, actions
from montecristo_env.core.constants import DUNGEONS, KINDS, LANES
from montecristo_env.core.layout import HIDDEN_FIELDS, STATE

pyspiel = pytest.importorskip("pyspiel")
chisquare = pytest.importorskip("scipy.stats").chisquare

from montecristo_env.openspiel import AgentBot, MonteCristoState, SeededChance  # noqa: E402

NAME = "python_montecristo"
VARIANTS = "discard=after_deal,refill=short,reshuffle=empty,left_over_bags=round,game_end=chest"
GAMES = ["", "players=3,reward=margin,target=10", f"players=4,reward=rank,round_limit=8,{VARIANTS}"]
SETTINGS = pytest.mark.parametrize("settings", GAMES)
PLAYERS = pytest.mark.parametrize("num_players", [2, 3, 4])
LEAST_P = 1e-4  # some hundred comparisons; the seeds are fixed, so they hold for good or fail for good


def load(settings: str = "") -> Any:
    return pyspiel.load_game(f"{NAME}({settings})")


def play(state: Any, seed: int = 0, steps: int = 10**6, chance: Any = None) -> list[Any]:
    """Random play, the states on the way; the last one is where it ends."""
    rng, found = np.random.default_rng(seed), [state.clone()]
    for _ in range(steps):
        if state.is_terminal():
            break
        if not state.is_chance_node():
            state.apply_action(int(rng.choice(state.legal_actions())))
        elif chance is not None:
            state.apply_action(chance(state))
        else:
            outcomes, odds = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(int(rng.choice(outcomes, p=odds)))
        found.append(state.clone())
    return found


# --- OpenSpiel's own tests -------------------------------------------------------------------------------------------


@SETTINGS
def test_random_sim_test(settings: str) -> None:
    pyspiel.random_sim_test(load(settings), num_sims=1, serialize=True, verbose=False)


API_TESTS = [
    "test_sequence_lengths",
    "test_observations_raises_error_on_invalid_player",
    "test_legal_actions_returns_empty_list_on_opponent",
    "test_private_information_contents",
    "test_no_invalid_public_observations",
]


@pytest.fixture(scope="module")
def api_test_class() -> Any:
    from absl import flags
    from open_spiel.integration_tests import api_test

    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["pytest"])

    class OfThisGame(api_test.EnforceAPIOnPartialTreeBase):
        game_name = f"{NAME}(players=3)"
        game = pyspiel.load_game(game_name)

    OfThisGame.setUpClass()
    names = {name for name in dir(OfThisGame) if name.startswith("test_")}
    assert names == set(API_TESTS), "OpenSpiel has other tests now"
    return OfThisGame


@pytest.mark.parametrize("name", API_TESTS)
def test_python_api(api_test_class: Any, name: str) -> None:
    getattr(api_test_class(name), name)()


def test_playthrough_is_the_same_again() -> None:
    from absl import flags
    from open_spiel.python.algorithms import generate_playthrough

    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["pytest"])
    game = f"{NAME}(players=3,round_limit=2)"
    once = generate_playthrough.playthrough_lines(game, seed=1)
    assert generate_playthrough.playthrough_lines(game, seed=1) == once
    assert f'ToString() = "{game}"' in once and "CurrentPlayer() = -4" in once
    replayed = generate_playthrough._playthrough_params(once)
    assert replayed["game_string"] == game and len(replayed["action_sequence"]) > 50
    assert generate_playthrough.playthrough_lines(**replayed, seed=1) == once


# --- chance ----------------------------------------------------------------------------------------------------------


@PLAYERS
def test_every_setup_of_the_lanes_is_equally_likely(num_players: int) -> None:
    """§2.1, in the words of the rules: every lane has each colour, and with two players two lanes favour each."""
    chances: dict[tuple[str, ...], float] = {}

    def extend(state: Any, done: tuple[str, ...], chance: float) -> None:
        for outcome, odds in state.chance_outcomes():
            words = (*done, state.action_to_string(pyspiel.PlayerId.CHANCE, outcome))
            if len(words) < (4 if num_players == 2 else 2):
                extend(state.child(outcome), words, chance * odds)
            else:
                chances[words] = chance * odds

    extend(load(f"players={num_players}").new_initial_state(), (), 1.0)
    expected = 6 * 3**4 if num_players == 2 else math.factorial(num_players) ** 2
    assert len(chances) == expected
    assert list(chances.values()) == pytest.approx([1 / expected] * expected)
    if num_players == 2:
        for words in chances:
            assert sorted(lane.count("red") for lane in words) == [1, 1, 2, 2]
            assert all(lane.count("red") + lane.count("blue") == 3 for lane in words)


@PLAYERS
def test_setups_of_seeds_come_as_often_as_their_odds(num_players: int) -> None:
    """§2: what real games begin with, against the odds of every step of the setup."""
    found: Counter[tuple[int, int]] = Counter()
    expected: Counter[tuple[int, int]] = Counter()
    game, seeds = load(f"players={num_players}"), 500
    steps = LANES + KINDS + DUNGEONS
    for seed in range(seeds):
        state = game.new_initial_state()
        state.deal(seed)
        while (step := len(state.history())) < steps - 2:  # of the last lane and kind there is but one
            for outcome, odds in state.chance_outcomes():
                expected[step, outcome] += odds
            found[step, state.dealt()] += 1
            state.apply_action(state.dealt())
    assert found.keys() <= expected.keys()
    for step in range(steps - 2):
        places = [place for place in expected if place[0] == step]
        assert len(places) > 1
        p_value = chisquare([found[place] for place in places], [expected[place] for place in places]).pvalue
        assert p_value > LEAST_P, step


@pytest.mark.parametrize("settings", ["players=2", "players=3", f"players=3,{VARIANTS}", "players=4"])
def test_what_is_drawn_comes_as_often_in_redrawn_games(settings: str) -> None:
    """What chance may do after an action is what the engine does in clones whose hidden parts are redrawn (§10.1).

    Offers and chests are compared as a whole; also where the pile holds cards of two shuffles, or must be made anew.
    """
    many_games = 6000
    compared: Counter[str] = Counter()
    game = load(settings)
    states = [state for seed in (3, 4) for state in play(game.new_initial_state(), seed)]
    for before, after in pairwise(states):
        if before.is_chance_node() or not after.is_chance_node() or not after.history():
            continue
        games = before.games()
        row = games.states[0]
        shuffles = {int(shuffle) for shuffle in row["slot_shuffle"] if shuffle >= 0}
        short = " short" if row["pile_size"] < 4 else ""
        kind = "token" if is_drawn("token", after) else f"card, {len(shuffles)}{short}"
        if compared[kind] == 4:
            continue
        compared[kind] += 1
        many = games[[0] * many_games].resample_hidden(np.random.default_rng(compared.total()))
        many.step(np.full(many_games, after.history()[-1]))
        found = Counter(map(pieces, many.states))
        odds = what_follows(after)
        assert found.keys() <= odds.keys() and sum(odds.values()) == pytest.approx(1)
        often = [key for key in odds if odds[key] * many_games >= 5]
        seldom = 1 - sum(odds[key] for key in often)
        counts = [found[key] for key in often]
        if seldom > 1e-9:
            counts, often = [*counts, many_games - sum(counts)], [*often, pieces(row)]
            odds[often[-1]] = seldom
        if len(often) > 1:
            assert chisquare(counts, [odds[key] * many_games for key in often]).pvalue > LEAST_P, kind
    needed = {"card, 1", "card, 1 short", *(["card, 2"] if "players=3" in settings else [])}
    assert compared["token"] == 4 and compared.keys() >= needed, compared


def is_drawn(what: str, state: Any) -> bool:
    """Whether chance is asked for a card, or a token."""
    return bool(state.is_chance_node() and state.action_to_string(-1, 0).startswith(what))


def pieces(row: Any) -> bytes:
    """Where cards and tokens are, whatever the order in which they were drawn."""
    parts = (row["offer"], np.sort(row["drawn_tokens"]), row["hands"].ravel(), row["dungeon_tokens"].ravel())
    return np.concatenate(parts).astype(np.int8).tobytes()


def what_follows(state: Any) -> Counter[bytes]:
    """All that may lie there when the next player is asked, by the odds of chance."""
    ends: Counter[bytes] = Counter()
    waiting = {b"": (state, 1.0)}
    while waiting:
        following: dict[bytes, tuple[Any, float]] = {}
        for one, chance in waiting.values():
            for outcome, odds in one.chance_outcomes():
                child = one.child(outcome)
                key = pieces(child._states()[0])
                if child.is_chance_node():
                    following[key] = (child, chance * odds + following.get(key, (None, 0.0))[1])
                else:
                    ends[key] += chance * odds
        waiting = following
    return ends


@SETTINGS
def test_chance_is_asked_only_where_something_is_drawn(settings: str) -> None:
    asked = quiet = 0
    for before, after in pairwise(play(load(settings).new_initial_state(), seed=2)):
        if before.is_chance_node():
            continue
        draws = bool(before.games().draws([after.history()[-1]])[0])
        if after.is_chance_node():
            assert draws
            asked += 1
        elif draws:  # only one thing could come: all redrawn games agree
            many = before.games()[[0] * 20].resample_hidden(np.random.default_rng(0))
            many.step(np.full(len(many), after.history()[-1]))
            assert len(np.unique(many.observe(player=0), axis=0)) == 1
        else:
            quiet += 1
    assert asked > 5 and quiet > 5 * asked


@pytest.mark.interpreted
def test_outcomes_of_which_one_is_possible_are_not_asked() -> None:
    for state in play(load("players=3").new_initial_state(), seed=4):
        if state.is_chance_node():
            outcomes = state.chance_outcomes()
            assert len(outcomes) > 1 and sum(odds for _, odds in outcomes) == pytest.approx(1)
            assert state.legal_actions() == [outcome for outcome, _ in outcomes]


@PLAYERS
def test_states_are_rows_of_the_engine(num_players: int) -> None:
    """Dealt from a seed, every state is what `GameBatch` has, hidden parts and streams included."""
    rng = np.random.default_rng(1)
    games = GameBatch(1, num_players, seed=11, ruleset=Ruleset.parse(VARIANTS), threads=1)
    state = load(f"players={num_players},{VARIANTS}").new_initial_state()
    state.deal(int(games.seeds[0]))
    unlike = {"play_key", "scratch", "bytes", "slot_card"}  # free slots of the pile keep no cards
    while not games.over[0]:
        while state.is_chance_node():
            state.apply_action(state.dealt())
        mine = state.games()
        for name in set(STATE.names or ()) - unlike:
            assert np.array_equal(mine.states[name], games.states[name]), name
        hidden = games.states["slot_shuffle"] >= 0
        assert np.array_equal(mine.states["slot_card"][hidden], games.states["slot_card"][hidden])
        assert not mine.violations()
        action = int(rng.choice(state.legal_actions()))
        games.step([action])
        state.apply_action(action)
    assert state.is_terminal() and state.returns() == pytest.approx(games.rewards[0, :num_players].tolist())


def test_seeded_chance_follows_another_line_of_play() -> None:
    game, chance = load("players=2"), SeededChance(4)
    state = game.new_initial_state()
    states = play(state, seed=1, steps=60, chance=chance)
    for earlier in states[30:40]:
        if earlier.is_chance_node():
            again = SeededChance(4)(earlier)
            assert again == chance(earlier) == state.history()[len(earlier.history())]
    with pytest.raises(MonteCristoError, match="player's turn"):
        chance(next(s for s in states if not s.is_chance_node()))


# --- states ----------------------------------------------------------------------------------------------------------


def test_nothing_hidden_is_in_what_players_see() -> None:
    """The same outcomes and actions on rows whose hidden parts differ all look the same."""
    game = load("players=3")
    one, other = game.new_initial_state(), game.new_initial_state()
    other.deal(99)
    for state in play(one.clone(), seed=6)[1:]:
        for twin in (one, other):
            twin.apply_action(state.history()[-1])
        assert one.current_player() == other.current_player()
        assert one.legal_actions() == other.legal_actions() and one.chance_outcomes() == other.chance_outcomes()
        assert one.returns() == other.returns()
        for player in range(3) if len(one.history()) % 7 == 0 else ():
            assert one.observation_tensor(player) == other.observation_tensor(player)
            assert one.observation_string(player) == other.observation_string(player)
            assert one.information_state_string(player) == other.information_state_string(player)
    different = [name for name in STATE.names or () if (one.games().states[name] != other.games().states[name]).any()]
    assert different and set(different) <= set(HIDDEN_FIELDS)


@pytest.mark.interpreted
def test_clones_and_copies_are_independent() -> None:
    state = load("players=2").new_initial_state()
    play(state, seed=0, steps=40)
    for clone in (state.clone(), copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        assert isinstance(clone, MonteCristoState)
        assert str(clone) == str(state) and clone.history() == state.history()
        before = str(state)
        clone.apply_action(clone.legal_actions()[0])
        assert str(state) == before and len(clone.history()) == len(state.history()) + 1


@SETTINGS
def test_serialization(settings: str) -> None:
    game = load(settings)
    for state in play(game.new_initial_state(), seed=8)[::25]:
        loaded, again = pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(game, state))
        assert str(loaded) == str(game) and str(again) == str(state)
        assert again.history() == state.history() and again.returns() == state.returns()
        assert again.observation_tensor(0) == state.observation_tensor(0)


def test_observer_gives_the_groups_of_the_observation() -> None:
    from open_spiel.python.observation import make_observation

    game = load("players=4")
    state = play(game.new_initial_state(), seed=1, steps=70)[-1]
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    seen = make_observation(game)
    for player in range(4):
        seen.set_from(state, player)
        assert {name: part.shape for name, part in seen.dict.items()} == {
            "global": (19,),
            "players": (4, 43),
            "kinds": (5, 46),
            "dungeons": (6, 48),
            "pairs": (6, 5, 3),
        }
        assert seen.tensor.tolist() == state.observation_tensor(player) == state.information_state_tensor(player)
    private = pyspiel.IIGObservationType(
        perfect_recall=False, public_info=False, private_info=pyspiel.PrivateInfoType.SINGLE_PLAYER
    )
    assert (
        make_observation(game, private).tensor is None and make_observation(game, private).string_from(state, 0) == ""
    )
    with pytest.raises(MonteCristoError, match="no parameters"):
        game.make_py_observer(None, {"depth": 3})


def test_nobody_is_shown_to_decide_where_chance_does() -> None:
    from montecristo_env import observation

    asked = 0
    for state in play(load("players=3").new_initial_state(), seed=3):
        seen = np.array(state.observation_tensor(1))
        deciding = sum(observation.view(seen, name).any() for name in ("deciding", "decision"))
        assert int(deciding) == (0 if state.is_chance_node() or state.is_terminal() else 2)
        asked += state.is_chance_node()
    assert asked > 20


# --- settings --------------------------------------------------------------------------------------------------------


def test_rule_sets_are_parameters() -> None:
    game = load(
        "card_adventurers=3:3:1,deck=6:0:0/2:2:2/2:2:2/2:2:2/2:2:2,market=3:3:2:1:1,players=4,reward=rank,target=25,"
        "tokens=2:2:2/2:2:2/2:2:2/2:2:2/0:0:6"
    )
    assert game.ruleset == Ruleset(
        deck=((6, 0, 0), *((2, 2, 2),) * 4),
        tokens=(*((2, 2, 2),) * 4, (0, 0, 6)),
        card_adventurers=(3, 3, 1),
        market=(3, 3, 2, 1, 1),
        target=25,
    )
    assert game.reward == "rank" and game.num_players() == 4 and game.min_utility() == -1
    assert str(pyspiel.load_game(str(game))) == str(game) and pyspiel.load_game(str(game)).ruleset == game.ruleset
    assert str(load("players=2,target=40")) == str(load())


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ("players=5", InvalidPlayerCount, "2 to 4 players"),
        ("reward=points", MonteCristoError, "win, rank, margin"),
        ("refill=never", MonteCristoError, "refill must be one of empty, short"),
        ("target=0", MonteCristoError, "target must be a whole number from 1"),
        ("market=best", MonteCristoError, "market must be numbers like 3:2:2:1:1"),
        ("market=3:2:2:1", MonteCristoError, "market must be 5 whole numbers"),
        ("deck=2:2:2", MonteCristoError, "deck must be 5 rows"),
        ("colour=red", pyspiel.SpielError, "colour"),
        ("target=many", pyspiel.SpielError, "target"),
    ],
)
def test_bad_settings_are_named(settings: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load(settings)


def test_illegal_actions_are_refused_and_change_nothing() -> None:
    state = load("players=2").new_initial_state()
    for wrong in (6, 10**6):
        with pytest.raises(IllegalAction, match="possible are 0 "):
            state.apply_action(wrong)
    play(state, seed=0, steps=45)
    before = str(state)
    wrong = next(code for code in range(actions.COUNT) if code not in state.legal_actions())
    for action in (wrong, actions.COUNT, 10**6):
        with pytest.raises(IllegalAction, match="legal are"):
            state.apply_action(action)
    assert str(state) == before
    over = play(load("round_limit=1").new_initial_state(), seed=0)[-1]
    with pytest.raises(IllegalAction, match="the game is over"):
        over.apply_action(0)


@PLAYERS
@pytest.mark.parametrize("reward", ["win", "rank", "margin"])
def test_returns_sum_to_zero_within_the_bounds_of_the_game(reward: str, num_players: int) -> None:
    game = load(f"players={num_players},reward={reward},round_limit=6")
    assert game.utility_sum() == 0 and game.num_players() == num_players
    highest = lowest = 0.0
    for seed in range(8):
        *_, end = play(game.new_initial_state(), seed)
        returns = end.returns()
        assert len(returns) == num_players and sum(returns) == pytest.approx(0, abs=1e-12) and any(returns)
        assert game.min_utility() <= min(returns) and max(returns) <= game.max_utility()
        highest, lowest = max(highest, *returns), min(lowest, *returns)
    if reward != "margin":  # bounds that are reached
        assert highest == game.max_utility() and lowest == pytest.approx(game.min_utility())


# --- algorithms ------------------------------------------------------------------------------------------------------


def test_mcts_plays_better_than_chance() -> None:
    from open_spiel.python.algorithms import mcts

    game, wins = load("target=3,round_limit=4,reward=margin"), 0.0
    for seed in range(4):
        rng = np.random.RandomState(seed)
        bots = [
            mcts.MCTSBot(game, 2.0, 12, mcts.RandomRolloutEvaluator(1, rng), random_state=rng),
            pyspiel.make_uniform_random_bot(1, seed),
        ]
        if seed % 2:
            bots = [pyspiel.make_uniform_random_bot(0, seed), bots[0]]
        wins += pyspiel.evaluate_bots(game.new_initial_state(), bots, seed)[seed % 2]
    assert wins > 0


def test_alphazero_interface() -> None:
    """OpenSpiel's AlphaZero searches with PUCT and never evaluates a chance node; its model sees tensors and masks."""
    from open_spiel.python.algorithms import mcts

    evaluated = []

    class Network(mcts.Evaluator):
        def evaluate(self, state: Any) -> np.ndarray:
            assert not state.is_chance_node()
            seen, mask = np.asarray(state.observation_tensor()), np.asarray(state.legal_actions_mask())
            evaluated.append((seen.shape, mask.shape))
            value = math.tanh(seen.sum() / 1000)
            return np.array([value, -value])

        def prior(self, state: Any) -> list[tuple[int, float]]:
            if state.is_chance_node():
                return list(state.chance_outcomes())
            legal = state.legal_actions()
            return [(action, 1 / len(legal)) for action in legal]

    game, rng = load(), np.random.RandomState(0)
    bot = mcts.MCTSBot(
        game,
        1.0,
        30,
        Network(),
        solve=False,
        random_state=rng,
        child_selection_fn=mcts.SearchNode.puct_value,
        dirichlet_noise=(0.25, 1.0),
        dont_return_chance_node=True,
    )
    state = next(s for s in play(game.new_initial_state(), seed=0) if not s.is_chance_node())
    root = bot.mcts_search(state)
    assert root.explore_count == 30 and {child.action for child in root.children} == set(state.legal_actions())
    assert set(evaluated) == {((799,), (actions.COUNT,))}


def test_rl_environment_plays_the_games_of_a_seed() -> None:
    from open_spiel.python import rl_environment
    from open_spiel.python.algorithms import random_agent

    env = rl_environment.Environment(load("players=3,target=10"), chance_event_sampler=SeededChance())
    agents = [random_agent.RandomAgent(player, env.action_spec()["num_actions"]) for player in range(3)]
    env.seed(7)
    games = GameBatch(1, 3, seed=7, ruleset="target=10", threads=1)
    for _ in range(2):
        time_step = env.reset()
        while not time_step.last():
            player = time_step.observations["current_player"]
            assert player == games.current_player[0]
            seen = np.array(time_step.observations["info_state"][player], np.float32)
            shown = np.empty((1, seen.size), np.float32)
            assert np.array_equal(seen, games.observe(shown)[0])
            assert time_step.observations["legal_actions"][player] == np.flatnonzero(games.action_mask()[0]).tolist()
            action = agents[player].step(time_step).action
            games.step([action])
            time_step = env.step([action])
        assert time_step.rewards == pytest.approx(games.rewards[0, :3].tolist())
        games.reset()


def test_agents_are_bots() -> None:
    game, won = load("target=15"), 0.0
    for seed in range(6):
        bots = [AgentBot("greedy"), pyspiel.make_uniform_random_bot(1, seed)]
        won += pyspiel.evaluate_bots(game.new_initial_state(), bots, seed)[0]
    assert won > 0
