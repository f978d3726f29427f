"""The Gymnasium interface, one game and many: learner and opponents, seats, ends, autoreset, Gymnasium's own checks."""

from __future__ import annotations

import copy
import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as vector_wrappers

from montecristo_env import (
    GameBatch,
    GameRecord,
    IllegalAction,
    InvalidArgument,
    InvalidPlayerCount,
    MonteCristoError,
    PublicView,
    Ruleset,
    UnplayableRuleset,
    actions,
    make_agent,
    observation,
    render,
)
from montecristo_env.gym_env import MonteCristoEnv
from montecristo_env.util.spaces import masked_space, observation_box
from montecristo_env.vector import MonteCristoVectorEnv
from shell_helpers import (
    ENV_ID,
    NO_MASK,
    SHORT,
    ChecksumAgent,
    LowestAgent,
    RecordingAgent,
    assert_same,
    illegal_one,
    legal_ones,
)

PLAYERS = pytest.mark.parametrize("num_players", [2, 3, 4])
AUTORESET = pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
STRICT = pytest.mark.filterwarnings("error")
Step = tuple[Any, float, bool, bool, dict[str, Any]]


def play(env: Any, rng: np.random.Generator, seed: int | None = None) -> list[Step]:
    """A game of random legal decisions of the learner."""
    seen, info = env.reset(seed=seed)
    steps: list[Step] = [(seen, 0.0, False, False, info)]
    while not (steps[-1][2] or steps[-1][3]):
        (action,) = legal_ones(steps[-1][4]["action_mask"][None], rng)
        steps.append(env.step(action))
    return steps


# --- Making one ------------------------------------------------------------------------------------------------------


@STRICT
def test_gymnasium_makes_it_by_name() -> None:
    env = gymnasium.make(ENV_ID, opponents=("random", "random"), seat="random")
    assert isinstance(env.unwrapped, MonteCristoEnv)
    assert env.observation_space == observation_box("float32")
    assert env.action_space == gymnasium.spaces.Discrete(actions.COUNT)
    assert env.unwrapped.games.num_players[0] == 3
    assert set(env.metadata["render_modes"]) == {"human", "rgb_array", "ansi"} and env.metadata["render_fps"] > 0
    play(env, np.random.default_rng(0))
    env.close()


@STRICT
@PLAYERS
@pytest.mark.parametrize("seat", [0, 1, "random"])
@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
def test_gymnasiums_check_env_finds_nothing(num_players: int, seat: int | str, obs_dtype: str) -> None:
    env = gymnasium.make(ENV_ID, opponents=("random",) * (num_players - 1), seat=seat, obs_dtype=obs_dtype)
    check_env(env.unwrapped, skip_render_check=True)


@STRICT
def test_gymnasiums_check_env_finds_nothing_in_any_render_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr("montecristo_env.render.renderer.RENDER_FPS", 1000.0)
    check_env(gymnasium.make(ENV_ID).unwrapped)


@pytest.mark.parametrize(
    ("num_players", "opponents"), [(2, "random"), (3, "random"), (4, LowestAgent()), (None, "random")]
)
def test_one_opponent_alone_plays_all_other_seats(num_players: int | None, opponents: Any) -> None:
    env = MonteCristoEnv(opponents, num_players)
    assert env.games.num_players[0] == (num_players or 2)
    play(env, np.random.default_rng(0), seed=0)


@pytest.mark.parametrize(
    "opponents",
    [("random",), ["random", "random"], (LowestAgent(), "random"), ("random", LowestAgent(), make_agent("random"))],
    ids=["a name", "names", "mixed", "mixed, three"],
)
def test_a_list_of_opponents_fills_the_table(opponents: Any) -> None:
    env = MonteCristoEnv(opponents)
    assert env.games.num_players[0] == len(opponents) + 1
    assert play(env, np.random.default_rng(0), seed=0)[-1][2]


@dataclass
class _Tunable:
    """An agent that compares by its settings and so cannot be hashed."""

    offset: int
    name: str = "tunable"

    def act(self, games: PublicView, rows: np.ndarray) -> np.ndarray:
        return ChecksumAgent(self.offset).act(games, rows)


def test_an_agent_need_not_be_hashable() -> None:
    rng, again = np.random.default_rng(0), np.random.default_rng(0)
    env = MonteCristoEnv((_Tunable(1), _Tunable(2)))
    twin = MonteCristoEnv((ChecksumAgent(1), ChecksumAgent(2)))
    for found, expected in zip(play(env, rng, seed=3), play(twin, again, seed=3), strict=True):
        assert_same(found, expected)


BAD_ARGUMENTS = [
    ({"seat": 2}, InvalidArgument, '0 to 1 or "random", but is 2'),
    ({"seat": -1}, InvalidArgument, '0 to 1 or "random", but is -1'),
    ({"seat": "first"}, InvalidArgument, "0 to 1 or \"random\", but is 'first'"),
    ({"seat": 0.0}, InvalidArgument, '0 to 1 or "random", but is 0.0'),
    ({"seat": None}, InvalidArgument, '0 to 1 or "random", but is None'),
    ({"opponents": "nobody"}, InvalidArgument, "no agent is called 'nobody': there are .*random"),
    ({"opponents": ("random", "nobody")}, InvalidArgument, "no agent is called 'nobody': there are .*random"),
    ({"opponents": ("random", 5)}, InvalidArgument, "no agent is called 5: there are .*random"),
    ({"opponents": "random:fast"}, InvalidArgument, "agent 'random:fast' cannot be made"),
    ({"opponents": None}, InvalidArgument, "None"),
    ({"opponents": 3}, InvalidArgument, "3"),
    ({"opponents": ()}, InvalidPlayerCount, "2 to 4 players can play, not 1"),
    ({"opponents": ("random",) * 4}, InvalidPlayerCount, "2 to 4 players can play, not 5"),
    ({"num_players": 1}, InvalidPlayerCount, "2 to 4 players can play, not 1"),
    ({"num_players": 5}, InvalidPlayerCount, "2 to 4 players can play, not 5"),
    ({"num_players": 2.0}, InvalidPlayerCount, "2 to 4 players can play, not 2.0"),
    ({"opponents": ("random",), "num_players": 4}, InvalidArgument, "4 players need 3 opponents, but there are 1"),
    ({"opponents": ("random",) * 3, "num_players": 2}, InvalidArgument, "2 players need 1 opponents, but there are 3"),
    ({"reward": "money"}, InvalidArgument, "win, rank, margin, but is 'money'"),
    ({"obs_dtype": "float64"}, InvalidArgument, "float32, int8, but is 'float64'"),
    ({"render_mode": "video"}, InvalidArgument, "human, rgb_array, ansi, but is 'video'"),
    ({"ruleset": 40}, UnplayableRuleset, "a rule set is a mapping with some of .*, not 40"),
]


@pytest.mark.parametrize("make", [MonteCristoEnv, MonteCristoVectorEnv])
@pytest.mark.parametrize(("arguments", "error", "message"), BAD_ARGUMENTS)
def test_bad_arguments_are_refused_saying_what_is_allowed(
    make: Callable[..., Any], arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**arguments)


def test_after_a_refusal_nothing_is_left_that_fails_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    for arguments in ({"opponents": "nobody"}, {"autoreset_mode": "sometimes"}, {"render_mode": "video"}):
        with pytest.raises(InvalidArgument):
            MonteCristoVectorEnv(2, **arguments)
        gc.collect()  # Gymnasium closes a vector env when it is deleted
    assert not complaints


@pytest.mark.parametrize("mode", ["disabled", "sometimes", None])
def test_an_unknown_autoreset_mode_is_refused(mode: Any) -> None:
    with pytest.raises(InvalidArgument, match="must be one of NextStep, SameStep, Disabled, but is"):
        MonteCristoVectorEnv(2, autoreset_mode=mode)


@pytest.mark.parametrize("num_envs", [0, -3, 2.0, "many"])
def test_a_senseless_number_of_envs_is_refused(num_envs: Any) -> None:
    with pytest.raises(InvalidArgument, match="whole number from 1"):
        MonteCristoVectorEnv(num_envs)


# --- Seats and opponents ---------------------------------------------------------------------------------------------


@PLAYERS
def test_a_fixed_seat_is_the_learners_in_every_game(num_players: int) -> None:
    for seat in range(num_players):
        env = MonteCristoEnv("random", num_players, seat=seat, ruleset=SHORT)
        for seed in (1, None, None):
            seen, _ = env.reset(seed=seed)
            assert env.seat == seat == env.games.current_player[0]
            assert_same(seen, env.games.observe(player=seat)[0] * observation.SCALE)


@PLAYERS
def test_a_random_seat_covers_all_seats_and_follows_from_the_seed(num_players: int) -> None:
    def seats() -> list[int]:
        env = MonteCristoEnv("random", num_players, seat="random", ruleset=SHORT)
        found = []
        for seed in range(40):
            for again in (seed, None, None):
                env.reset(seed=again)
                found.append(env.seat)
        return found

    first = seats()
    assert set(first) == set(range(num_players))
    assert min(np.bincount(first)) > len(first) / num_players / 2
    assert seats() == first


@PLAYERS
def test_opponents_sit_clockwise_from_the_learner_in_the_given_order(num_players: int) -> None:
    for seat in range(num_players):
        opponents = [RecordingAgent() for _ in range(num_players - 1)]
        play(MonteCristoEnv(opponents, seat=seat), np.random.default_rng(seat), seed=seat)
        for place, opponent in enumerate(opponents, start=1):
            assert opponent.played == {(0, (seat + place) % num_players)}


def test_opponents_sit_clockwise_from_the_learner_whatever_seat_they_draw() -> None:
    opponents = [RecordingAgent() for _ in range(3)]
    env = MonteCristoVectorEnv(16, opponents)
    _, infos = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(12):  # no game ends as early as that
        _, _, terminated, _, infos = env.step(legal_ones(infos["action_mask"], rng))
        assert not terminated.any()
    assert len(set(env.seats.tolist())) == 4
    for place, opponent in enumerate(opponents, start=1):
        assert opponent.played == {(game, (int(seat) + place) % 4) for game, seat in enumerate(env.seats)}


def test_an_agent_in_two_seats_is_one_agent_and_plays_only_those() -> None:
    twice, once = RecordingAgent(), RecordingAgent()
    play(MonteCristoEnv((twice, once, twice), seat=1), np.random.default_rng(1), seed=1)
    assert twice.played == {(0, 2), (0, 0)}
    assert once.played == {(0, 3)}


def test_opponents_play_all_waiting_games_in_one_call() -> None:
    opponent = RecordingAgent()
    env = MonteCristoVectorEnv(64, opponent, num_players=3)
    _, infos = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(10):
        *_, infos = env.step(legal_ones(infos["action_mask"], rng))
    assert max(map(len, opponent.calls)) > 32
    assert sum(map(len, opponent.calls)) > 8 * len(opponent.calls)


def test_an_opponent_that_breaks_the_rules_is_named_by_an_error_not_blamed_on_the_learner() -> None:
    class Cheat(LowestAgent):
        def act(self, games: PublicView, rows: np.ndarray) -> np.ndarray:
            return games.action_mask(rows=rows).argmin(axis=1)

    with pytest.raises(IllegalAction, match="player 1 may not"):
        play(MonteCristoEnv(Cheat(), seat=0), np.random.default_rng(0), seed=0)


def test_random_opponents_play_alike_whether_the_engine_or_their_agent_moves() -> None:
    class Slow:
        name = "slow"

        def act(self, games: PublicView, rows: np.ndarray) -> np.ndarray:
            return games.sample_actions(rows)

    fast, slow = MonteCristoEnv("random", 4, seat=2), MonteCristoEnv(Slow(), 4, seat=2)
    played = [play(env, np.random.default_rng(5), seed=5) for env in (fast, slow)]
    for found, expected in zip(*played, strict=True):
        assert_same(found, expected)


# --- A game ----------------------------------------------------------------------------------------------------------


@STRICT
@PLAYERS
@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
def test_every_step_shows_the_learners_view_and_legal_actions(num_players: int, obs_dtype: str) -> None:
    env = MonteCristoEnv("random", num_players, obs_dtype=obs_dtype)
    rng = np.random.default_rng(0)
    seen, info = env.reset(seed=0)
    terminated = False
    while not terminated:
        view = env.games.observe(player=env.seat)[0]
        assert_same(seen, view if obs_dtype == "int8" else view * observation.SCALE)
        assert env.observation_space.contains(seen)
        assert env.games.current_player[0] == env.seat
        assert_same(info, {"action_mask": env.games.action_mask()[0]})
        assert_same(env.action_masks(), info["action_mask"])
        (action,) = legal_ones(info["action_mask"][None], rng)
        seen, reward, terminated, truncated, info = env.step(action)
        assert type(reward) is float and type(terminated) is bool and truncated is False
        assert terminated or reward == 0
    assert env.observation_space.contains(seen)
    assert_same(info["action_mask"], NO_MASK)
    assert_same(env.action_masks(), NO_MASK)


@PLAYERS
@pytest.mark.parametrize("reward", ["win", "rank", "margin"])
def test_the_end_pays_the_games_reward_and_says_how_it_went(num_players: int, reward: str) -> None:
    for seed in range(6):
        env = MonteCristoEnv("random", num_players, reward=reward)
        _, paid, terminated, truncated, info = play(env, np.random.default_rng(seed), seed)[-1]
        games, seat = env.games, env.seat
        scores = games.scores[0, :num_players].tolist()
        winners = games.winners[0, :num_players]
        assert (terminated, truncated) == (True, False)
        assert paid == games.rewards[0, seat]
        assert_same(
            {name: value for name, value in info.items() if name != "action_mask"},
            {
                "win": float(np.float32(winners[seat] / winners.sum())),
                "score_margin": scores[seat] - max(scores[:seat] + scores[seat + 1 :]),
                "decisions": int(games.states["decisions"][0]),
                "illegal_action": False,
            },
        )
        if reward == "win" and winners.sum() == 1:
            assert paid == pytest.approx(1 if winners[seat] else -1 / (num_players - 1))


def test_a_shared_win_counts_in_parts() -> None:
    """Nobody has scored at the limit of one round in a game whose dungeons everybody leaves alone."""
    found = set()
    for seed in range(60):
        env = MonteCristoEnv("random", 3, ruleset=Ruleset(round_limit=1))
        *_, info = play(env, np.random.default_rng(seed), seed)[-1]
        winners = int(env.games.winners[0].sum())
        assert info["win"] in (0.0, pytest.approx(1 / winners))
        found.add(round(info["win"], 2))
    assert found & {0.5, 0.33}


@PLAYERS
def test_a_game_at_its_round_limit_is_truncated_not_terminated(num_players: int) -> None:
    env = MonteCristoEnv("random", num_players, ruleset=SHORT, reward="margin")
    _, reward, terminated, truncated, info = play(env, np.random.default_rng(0), 0)[-1]
    assert truncated and not terminated
    assert reward == env.games.rewards[0, env.seat]
    assert {"win", "score_margin", "decisions", "illegal_action"} < info.keys()


@pytest.mark.parametrize("bad", ["illegal", -1, actions.COUNT, 10**6])
def test_an_illegal_action_ends_the_game_with_minus_1(bad: Any) -> None:
    env = MonteCristoEnv("random", 3)
    _, info = env.reset(seed=0)
    for _ in range(5):
        *_, info = env.step(info["action_mask"].argmax())
    mask = info["action_mask"]
    before = env.games.states.tobytes()
    seen, reward, terminated, truncated, info = env.step(illegal_one(mask) if bad == "illegal" else bad)
    assert (reward, terminated, truncated) == (-1.0, True, False)
    assert env.games.states.tobytes() == before  # it was not played, and nobody plays on
    assert env.observation_space.contains(seen)
    assert info["illegal_action"] is True and info["win"] == 0.0
    assert_same(info["action_mask"], NO_MASK)
    _, info = env.reset(seed=0)
    assert info["action_mask"].any()
    assert play(env, np.random.default_rng(0))[-1][4]["illegal_action"] is False


@pytest.mark.parametrize("kind", [int, np.int8, np.int32, np.int64, np.uint8])
def test_any_kind_of_whole_number_is_an_action(kind: Any) -> None:
    env, twin = MonteCristoEnv(), MonteCristoEnv()
    _, info = env.reset(seed=1)
    twin.reset(seed=1)
    action = int(info["action_mask"].argmax())
    assert_same(env.step(kind(action)), twin.step(action))


@pytest.mark.parametrize("action", [1.5, None, "deal", np.array([1, 2])])
def test_what_is_no_whole_number_is_no_action(action: Any) -> None:
    env = MonteCristoEnv()
    env.reset(seed=1)
    before = env.games.states.tobytes()
    with pytest.raises((MonteCristoError, TypeError, ValueError)):
        env.step(action)
    assert env.games.states.tobytes() == before


def test_the_same_seed_gives_the_same_game_and_the_same_games_after_it() -> None:
    def three_games(env: MonteCristoEnv) -> list[Step]:
        rng = np.random.default_rng(2)
        return [step for seed in (4, None, None) for step in play(env, rng, seed)]

    env = MonteCristoEnv("random", 3)
    first = three_games(env)
    assert not np.array_equal(first[0][0], play(env, np.random.default_rng(2), 5)[0][0])
    for again in (env, MonteCristoEnv("random", 3)):
        for found, expected in zip(three_games(again), first, strict=True):
            assert_same(found, expected)


def test_a_deepcopy_in_mid_game_goes_on_as_the_original_and_apart_from_it() -> None:
    env = MonteCristoEnv(("random", ChecksumAgent()))
    _, info = env.reset(seed=0)
    for _ in range(20):
        *_, info = env.step(info["action_mask"].argmax())
    before = env.games.states.tobytes()
    twin = copy.deepcopy(env)
    steps = []
    for one in (twin, env):
        assert one.games.states.tobytes() == before
        step: Step = (None, 0.0, False, False, info)
        while not step[2]:
            step = one.step(step[4]["action_mask"].argmax())
        steps.append(step)
    assert_same(*steps)


@STRICT
@pytest.mark.parametrize(("mode", "kind"), [("ansi", str), ("rgb_array", np.ndarray)])
def test_render(mode: str, kind: type) -> None:
    env = gymnasium.make(ENV_ID, render_mode=mode)
    env.reset(seed=0)
    assert isinstance(env.render(), kind)
    env.close()
    many = gymnasium.make_vec(ENV_ID, num_envs=3, render_mode=mode)
    many.reset(seed=0)
    pictures = many.render()
    assert len(pictures) == 3 and all(isinstance(picture, kind) for picture in pictures)
    many.close()


def test_render_without_a_mode_warns() -> None:
    env = MonteCristoEnv()
    env.reset()
    with pytest.warns(UserWarning, match="without specifying any render mode"):
        assert env.render() is None
    assert MonteCristoVectorEnv(2).render() is None


# --- Many games ------------------------------------------------------------------------------------------------------


@STRICT
def test_make_vec_uses_the_native_batch_and_declares_its_autoreset_mode() -> None:
    env = gymnasium.make_vec(ENV_ID, num_envs=5, opponents=("random", "random"))
    assert isinstance(env, MonteCristoVectorEnv)
    assert isinstance(env.games, GameBatch) and len(env.games) == env.num_envs == 5
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert set(env.metadata["render_modes"]) == {"human", "rgb_array", "ansi"}
    for mode in (AutoresetMode.SAME_STEP, "SameStep"):
        env = gymnasium.make_vec(ENV_ID, num_envs=5, autoreset_mode=mode)
        assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    sync = gymnasium.make_vec(ENV_ID, num_envs=2, vectorization_mode="sync")
    assert isinstance(sync, SyncVectorEnv)


@STRICT
@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
def test_spaces_contain_what_comes_out(obs_dtype: str) -> None:
    env = MonteCristoVectorEnv(6, obs_dtype=obs_dtype, ruleset=SHORT)
    single = MonteCristoEnv(obs_dtype=obs_dtype)
    assert env.single_observation_space == single.observation_space
    assert env.single_action_space == single.action_space
    assert env.observation_space.shape == (6, observation.SIZE) and env.action_space.shape == (6,)
    rng = np.random.default_rng(0)
    seen, infos = env.reset(seed=0)
    for _ in range(60):
        assert env.observation_space.contains(seen)
        acts = legal_ones(infos["action_mask"], rng)
        assert env.action_space.contains(acts)
        assert_same(env.action_masks(), infos["action_mask"])
        seen, rewards, terminated, truncated, infos = env.step(acts)
        assert rewards.dtype == np.float64 and rewards.shape == (6,)
        assert terminated.dtype == truncated.dtype == np.bool_


def same_where_masked(found: dict[str, Any], expected: dict[str, Any], where: str = "infos") -> None:
    """Infos with the same keys and `_key` masks, and the same values wherever the mask says that there is one."""
    assert found.keys() == expected.keys(), f"{where}: {found.keys()} != {expected.keys()}"
    for key, value in expected.items():
        if key.startswith("_"):
            assert_same(found[key], value, f"{where}[{key!r}]")
        elif isinstance(value, dict):
            same_where_masked(found[key], value, f"{where}[{key!r}]")
        else:
            has = expected[f"_{key}"]
            assert found[key].shape == value.shape, f"{where}[{key!r}]"
            assert_same(found[key][has], value[has], f"{where}[{key!r}]")


OPPONENTS: dict[str, Any] = {
    "random": ("random",),
    "checksum": (ChecksumAgent(3), ChecksumAgent(4)),
    "mixed": ("random", LowestAgent(), ChecksumAgent()),
}


@STRICT
@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("opponents", OPPONENTS.values(), ids=OPPONENTS)
@pytest.mark.parametrize("ruleset", [Ruleset(target=8), SHORT], ids=["terminated", "truncated"])
def test_it_equals_gymnasiums_own_vector_of_single_envs(mode: AutoresetMode, opponents: Any, ruleset: Ruleset) -> None:
    settings = {"opponents": opponents, "ruleset": ruleset, "reward": "rank"}
    native = MonteCristoVectorEnv(5, autoreset_mode=mode, **settings)
    sync = SyncVectorEnv([lambda: MonteCristoEnv(**settings)] * 5, autoreset_mode=mode)
    assert native.observation_space == sync.observation_space and native.action_space == sync.action_space
    rng = np.random.default_rng(7)
    (seen, infos), (expected_seen, expected_infos) = native.reset(seed=30), sync.reset(seed=30)
    assert_same(seen, expected_seen)
    assert_same(infos, expected_infos)
    ended = mistakes = 0
    for _ in range(150):
        acts = legal_ones(infos["action_mask"], rng)
        for row in np.flatnonzero(rng.random(5) < 0.01):
            acts[row] = rng.choice([illegal_one(infos["action_mask"][row]), -1, actions.COUNT + 3])
            mistakes += 1
        found, expected = native.step(acts), sync.step(acts)
        for one, other in zip(found[:4], expected[:4], strict=True):
            assert_same(one, other)
        infos = found[4]
        same_where_masked(infos, expected[4])
        over = found[2] | found[3]
        ended += int(over.sum())
        if mode is AutoresetMode.DISABLED and over.any():
            again, expected_again = (env.reset(options={"reset_mask": over.copy()}) for env in (native, sync))
            assert_same(again[0], expected_again[0])
            same_where_masked(again[1], expected_again[1])
            infos = again[1]
    assert ended > 10 and mistakes > 2
    assert native.seats.tolist() == list(sync.get_attr("seat"))


@STRICT
@AUTORESET
def test_what_infos_hold_where_they_hold_nothing_is_as_in_gymnasium(mode: AutoresetMode) -> None:
    """Zeros for numbers, None for observations, also where the `_key` mask is False."""
    native = MonteCristoVectorEnv(6, ruleset=Ruleset(target=8), autoreset_mode=mode)
    sync = SyncVectorEnv([lambda: MonteCristoEnv(ruleset=Ruleset(target=8))] * 6, autoreset_mode=mode)
    rng = np.random.default_rng(7)
    _, infos = native.reset(seed=1)
    sync.reset(seed=1)
    ended = 0
    while not ended:
        acts = legal_ones(infos["action_mask"], rng)
        _, _, terminated, _, infos = native.step(acts)
        *_, expected = sync.step(acts)
        ended = int(terminated.sum())
        assert_same(infos, expected, "infos")
    assert ended < 6


@STRICT
@AUTORESET
def test_reset_mask_restarts_some_games_and_leaves_the_others(mode: AutoresetMode) -> None:
    native = MonteCristoVectorEnv(4, ("random", "random"), ruleset=SHORT, autoreset_mode=mode)
    sync = SyncVectorEnv(
        [lambda: MonteCristoEnv(("random", "random"), ruleset=SHORT)] * 4, autoreset_mode=mode, copy=True
    )
    rng = np.random.default_rng(1)
    native.reset(seed=3)
    sync.reset(seed=3)
    for turn in range(120):
        if turn % 7 == 3:
            mask = rng.random(4) < 0.5
            mask[turn % 4] = True
            seed = [None, 50 + turn, [turn, None, turn + 1, None]][turn % 3]
            others = native.games.states[~mask].tobytes()
            found = native.reset(seed=seed, options={"reset_mask": mask.copy()})
            expected = sync.reset(seed=seed, options={"reset_mask": mask.copy()})
            assert native.games.states[~mask].tobytes() == others
            assert_same(found[0], expected[0])
            same_where_masked(found[1], expected[1])
        acts = legal_ones(native.action_masks(), rng)
        found_step, expected_step = native.step(acts), sync.step(acts)
        for one, other in zip(found_step[:4], expected_step[:4], strict=True):
            assert_same(one, other)
        same_where_masked(found_step[4], expected_step[4])


def test_without_autoreset_an_ended_game_must_be_reset_before_the_next_step() -> None:
    env = MonteCristoVectorEnv(3, autoreset_mode="Disabled")
    _, infos = env.reset(seed=0)
    acts = infos["action_mask"].argmax(axis=1)
    acts[1] = illegal_one(infos["action_mask"][1])
    _, _, over, _, infos = env.step(acts)
    assert over.tolist() == [False, True, False]
    before = env.games.states.tobytes()
    with pytest.raises(ResetNeeded, match="the games 1 have ended"):
        env.step(infos["action_mask"].argmax(axis=1))
    assert env.games.states.tobytes() == before
    _, infos = env.reset(options={"reset_mask": over})
    env.step(infos["action_mask"].argmax(axis=1))


@pytest.mark.parametrize(
    "mask", [[True, False], np.ones(3, np.bool_), np.ones((2, 1), np.bool_), np.ones(2), 1, None], ids=repr
)
def test_a_reset_mask_of_another_kind_is_refused(mask: Any) -> None:
    env = MonteCristoVectorEnv(2)
    env.reset(seed=0)
    with pytest.raises(InvalidArgument, match=r"bool array of shape \(2,\)"):
        env.reset(options={"reset_mask": mask})


def test_seeds_count_up_or_are_given_one_by_one() -> None:
    env = MonteCristoVectorEnv(3, "random")
    counted, _ = env.reset(seed=8)
    listed, _ = env.reset(seed=[8, 9, 10])
    assert_same(listed, counted)
    single = MonteCristoEnv("random")
    for row, seed in enumerate((8, 9, 10)):
        assert_same(counted[row], single.reset(seed=seed)[0])
    mixed, _ = env.reset(seed=[None, 9, None])
    assert_same(mixed[1], counted[1])
    assert not np.array_equal(mixed[0], counted[0])
    with pytest.raises(InvalidArgument, match="3 of them, but there are 2"):
        env.reset(seed=[1, 2])


@AUTORESET
def test_illegal_actions_end_their_own_games_only(mode: AutoresetMode) -> None:
    env = MonteCristoVectorEnv(4, autoreset_mode=mode)
    _, infos = env.reset(seed=0)
    acts = infos["action_mask"].argmax(axis=1)
    acts[1], acts[3] = illegal_one(infos["action_mask"][1]), -1
    seen, rewards, terminated, truncated, infos = env.step(acts)
    bad = np.array([False, True, False, True])
    assert_same(terminated, bad)
    assert not truncated.any()
    assert rewards.tolist() == [0, -1, 0, -1]
    outcome = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert_same(outcome["illegal_action"], bad)
    assert_same(outcome["_illegal_action"], bad)
    assert infos["action_mask"].any(axis=1).tolist() == (
        [True] * 4 if mode is AutoresetMode.SAME_STEP else [True, False, True, False]
    )
    _, rewards, terminated, _, infos = env.step(infos["action_mask"].argmax(axis=1))
    assert not rewards.any() and not terminated.any()
    assert infos["action_mask"].any(axis=1).all()
    assert env.observation_space.contains(seen)


def test_what_was_returned_is_not_changed_by_what_follows() -> None:
    env = MonteCristoVectorEnv(4, ruleset=SHORT, autoreset_mode="SameStep")
    rng = np.random.default_rng(0)
    _, infos = env.reset(seed=0)
    given: list[tuple[Any, Any]] = []
    for _ in range(50):
        step = env.step(legal_ones(infos["action_mask"], rng))
        infos = step[4]
        given.append((step, copy.deepcopy(step)))
    for step, kept in given:
        for one, other in zip(step, kept, strict=True):
            assert_same(one, other)


@pytest.mark.parametrize("acts", [np.zeros(2, int), np.zeros((3, 1), int), 0, [[0, 0, 0]], []], ids=repr)
def test_actions_of_another_shape_are_refused(acts: Any) -> None:
    env = MonteCristoVectorEnv(3)
    env.reset(seed=0)
    before = env.games.states.tobytes()
    with pytest.raises(InvalidArgument, match=r"must have the shape \(3,\)"):
        env.step(acts)
    assert env.games.states.tobytes() == before


@pytest.mark.parametrize("acts", [[0.5, 1.5, 2.5], ["a", "b", "c"], [None] * 3], ids=repr)
def test_actions_that_are_no_whole_numbers_are_refused(acts: Any) -> None:
    env = MonteCristoVectorEnv(3)
    env.reset(seed=0)
    before = env.games.states.tobytes()
    with pytest.raises(InvalidArgument, match="whole numbers"):
        env.step(acts)
    assert env.games.states.tobytes() == before


# --- Gymnasium's vector wrappers -------------------------------------------------------------------------------------


@STRICT
@AUTORESET
def test_record_episode_statistics_sees_what_it_sees_of_gymnasiums_own_vector(mode: AutoresetMode) -> None:
    settings: dict[str, Any] = {"ruleset": SHORT, "reward": "margin"}
    native = vector_wrappers.RecordEpisodeStatistics(MonteCristoVectorEnv(4, autoreset_mode=mode, **settings))
    sync = vector_wrappers.RecordEpisodeStatistics(
        SyncVectorEnv([lambda: MonteCristoEnv(**settings)] * 4, autoreset_mode=mode)
    )
    rng = np.random.default_rng(0)
    _, infos = native.reset(seed=2)
    sync.reset(seed=2)
    games = 0
    for _ in range(100):
        acts = legal_ones(infos["action_mask"], rng)
        _, rewards, terminated, truncated, infos = native.step(acts)
        *_, expected = sync.step(acts)
        assert infos.keys() == expected.keys()
        ended = terminated | truncated
        if ended.any():
            found, expected = infos["episode"], expected["episode"]
            assert_same(infos["_episode"], ended)
            assert_same({key: found[key] for key in "rl"}, {key: expected[key] for key in "rl"})
            np.testing.assert_allclose(found["r"][ended], rewards[ended])
            games += int(ended.sum())
    assert games > 8


@STRICT
@pytest.mark.parametrize(
    "wrap",
    [
        vector_wrappers.DictInfoToList,
        vector_wrappers.NormalizeObservation,
        vector_wrappers.NormalizeReward,
        lambda env: vector_wrappers.ClipReward(env, -0.5, 0.5),
        lambda env: vector_wrappers.TransformReward(env, lambda rewards: rewards * 2),
    ],
    ids=[
        "DictInfoToList",
        "NormalizeObservation",
        "NormalizeReward",
        "ClipReward",
        "TransformReward",
    ],
)
def test_gymnasiums_vector_wrappers_work_on_it(wrap: Callable[[Any], Any]) -> None:
    env = wrap(MonteCristoVectorEnv(4, ruleset=SHORT))
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    ended = 0
    for _ in range(60):
        seen, rewards, terminated, truncated, _ = env.step(legal_ones(env.unwrapped.action_masks(), rng))
        assert seen.shape == (4, observation.SIZE) and rewards.shape == (4,)
        ended += int((terminated | truncated).sum())
    assert ended
    env.close()


# --- Specs and notebooks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_a_spec_with_a_rule_set_comes_back_from_json(make: Callable[..., Any]) -> None:
    rules = Ruleset(target=7, market=(3, 3, 2, 2, 1))
    env = make(ENV_ID, opponents=("random", "random"), ruleset=rules, obs_dtype="int8")
    again = make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.games.ruleset == rules
    assert again.unwrapped.games.num_players.tolist() == [3]
    first, second = env.reset(seed=3), again.reset(seed=3)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1]["action_mask"], second[1]["action_mask"])


def test_a_mapping_that_is_no_rule_set_is_refused() -> None:
    with pytest.raises(UnplayableRuleset, match=r"a mapping with some of deck.*, not \{'targets': 7\}"):
        gymnasium.make(ENV_ID, ruleset={"targets": 7})


def test_a_notebook_shows_the_board_of_what_gymnasium_makes() -> None:
    env: Any = gymnasium.make(ENV_ID)
    env.reset(seed=0)
    assert env._repr_svg_() == render.svg(env.unwrapped.games)
    with pytest.raises(gymnasium.error.ResetNeeded):
        gymnasium.make(ENV_ID).step(0)


def test_a_notebook_shows_one_game_as_its_board_and_many_as_a_table() -> None:
    assert GameBatch(1, 3, seed=0)._repr_html_() == render.html(GameBatch(1, 3, seed=0))
    many = GameBatch(1000, 3, seed=0)
    many.play_random(10**6, rows=[1])
    shown = many._repr_html_()
    assert "&lt;GameBatch of 1000 games, 3 players, 1 over&gt;" in shown and len(shown) < 2000
    assert ", ".join(map(str, many.scores[1, :3])) in shown and shown.count("nobody, it is over") == 1


def test_a_record_shows_itself_in_one_line_and_in_a_notebook_with_its_last_board() -> None:
    games = GameBatch(1, 2, seed=0)
    record = GameRecord.record(games, players=["<Ann>", "Bob"])
    assert repr(record) == "<GameRecord of <Ann>, Bob: 0 moves, not over>"
    games.play_random(10**6)
    winner = ["<Ann>", "Bob"][int(games.winners[0].argmax())]
    assert f"over, {winner} won, scores {games.scores[0, 0]}, {games.scores[0, 1]}>" in repr(record)
    assert len(repr(record)) < 120
    shown = record._repr_html_()
    assert "&lt;Ann&gt;" in shown and "<Ann>" not in shown
    assert render.html(games, names=["<Ann>", "Bob"]) in shown


# --- Masks in observations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
@STRICT
def test_masks_come_in_observations_if_asked_for(obs_dtype: str) -> None:
    settings = {"obs_dtype": obs_dtype, "ruleset": SHORT}
    env, plain = gymnasium.make(ENV_ID, mask_in_observation=True, **settings), gymnasium.make(ENV_ID, **settings)
    check_env(env.unwrapped, skip_render_check=True)
    assert env.observation_space == masked_space(obs_dtype)
    (seen, info), (expected, _) = env.reset(seed=3), plain.reset(seed=3)
    rng, over = np.random.default_rng(0), False
    while not over:
        assert_same(seen, {"observation": expected, "action_mask": info["action_mask"]})
        assert env.observation_space.contains(seen)
        (action,) = legal_ones(seen["action_mask"][None], rng)
        seen, _, terminated, truncated, info = env.step(action)
        expected = plain.step(action)[0]
        over = terminated or truncated
    assert_same(seen, {"observation": expected, "action_mask": np.zeros(actions.COUNT, np.int8)})


@STRICT
@AUTORESET
def test_a_vector_with_masks_in_observations_equals_gymnasiums_own(mode: AutoresetMode) -> None:
    settings = {"ruleset": SHORT, "mask_in_observation": True}
    native = gymnasium.make_vec(ENV_ID, 5, autoreset_mode=mode, **settings)
    sync = SyncVectorEnv([lambda: MonteCristoEnv(**settings)] * 5, autoreset_mode=mode)
    assert native.observation_space == sync.observation_space
    (seen, infos), (expected, _) = native.reset(seed=30), sync.reset(seed=30)
    rng, ended = np.random.default_rng(7), 0
    for _ in range(60):
        assert_same(seen, expected)
        assert native.observation_space.contains(seen)
        acts = legal_ones(infos["action_mask"], rng)
        (seen, _, terminated, truncated, infos), (expected, *_, expected_infos) = native.step(acts), sync.step(acts)
        same_where_masked(infos, expected_infos)
        ended += int((terminated | truncated).sum())
    assert ended > 5
