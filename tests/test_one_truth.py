"""One truth: the same seeds and actions, through every interface, are the same games, step by step.

`GameBatch` plays games in which everybody decides by a checksum of what they see, and tells them in full. Then every
shell is played with the same seeds and the same decisions, the shells with opponents against agents that decide by the
same checksum. Whatever a shell shows at any moment must be what was told.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from montecristo_env import Ruleset, actions, montecristo_v0
from montecristo_env.games import seed_of_game
from montecristo_env.gym_env import MonteCristoEnv
from montecristo_env.text import TextGame, describe
from montecristo_env.vector import MonteCristoVectorEnv
from shell_helpers import (
    ENV_ID,
    NO_MASK,
    ChecksumAgent,
    Moment,
    Transcript,
    assert_same,
    choose,
    counts,
    scaled,
    transcripts,
)

SEED = 20
GAMES = 5  # with the seeds from SEED on
EACH = 2  # the game of the seed, and the one that follows it
PLAYERS = pytest.mark.parametrize("num_players", [2, 3, 4])
RULESETS = {"full": Ruleset(), "cut off": Ruleset(round_limit=3)}
RULES = pytest.mark.parametrize("rules", RULESETS)
SEAT = pytest.mark.parametrize("seat", [0, 1, "random"])


@cache
def told(num_players: int, rules: str) -> list[list[Transcript]]:
    """What `GameBatch` tells of the games of all seeds."""
    return transcripts(num_players, range(SEED, SEED + GAMES), EACH, RULESETS[rules], "rank")


def settings(num_players: int, rules: str, seat: int | str) -> dict[str, Any]:
    """A learner among agents that play as it does."""
    opponents = (ChecksumAgent(),) * (num_players - 1)
    return {"opponents": opponents, "seat": seat, "ruleset": RULESETS[rules], "reward": "rank"}


@RULES
@PLAYERS
def test_the_games_told_are_whole_games(num_players: int, rules: str) -> None:
    for games in told(num_players, rules):
        assert len(games) == EACH and len({game.moments[0].seen.tobytes() for game in games}) == EACH
        for game in games:
            assert len(game.moments) > 10 and not game.end.mask.any()
            assert {moment.player for moment in game.moments} == {-1, *range(num_players)}
            assert (game.terminated, game.truncated) == ((True, False) if rules == "full" else (False, True))
            assert sum(game.rewards) == pytest.approx(0, abs=1e-6)


@RULES
@PLAYERS
@pytest.mark.parametrize("wrapped", [False, True])
def test_pettingzoo_aec(num_players: int, rules: str, wrapped: bool) -> None:
    make = montecristo_v0.env if wrapped else montecristo_v0.raw_env
    env = make(num_players=num_players, ruleset=RULESETS[rules], reward="rank")
    for row, games in enumerate(told(num_players, rules)):
        for number, game in enumerate(games):
            env.reset(seed=SEED + row if number == 0 else None)
            for moment in game.moments:
                for seat, agent in enumerate(env.possible_agents):
                    mask = moment.mask if seat == moment.player else NO_MASK
                    assert_same(env.observe(agent), {"observation": scaled(moment.seen[seat]), "action_mask": mask})
                    assert_same(env.infos[agent], {"action_mask": mask})
                assert_same(env.state(), scaled(moment.seen[0]))
                if moment is game.end:
                    break
                assert env.agent_selection == f"player_{moment.player}"
                assert set(env.rewards.values()) == {0.0}
                assert not any(env.terminations.values()) and not any(env.truncations.values())
                env.step(moment.action)
            assert list(env.rewards.values()) == list(env._cumulative_rewards.values()) == game.rewards
            assert set(env.terminations.values()) == {game.terminated}
            assert set(env.truncations.values()) == {game.truncated}


@RULES
@PLAYERS
@SEAT
@pytest.mark.parametrize("made", [False, True])
def test_gymnasium_env(num_players: int, rules: str, seat: int | str, made: bool) -> None:
    make = (lambda **kwargs: gymnasium.make(ENV_ID, **kwargs)) if made else MonteCristoEnv
    env = make(**settings(num_players, rules, seat))
    for row, games in enumerate(told(num_players, rules)):
        for number, game in enumerate(games):
            seen, info = env.reset(seed=SEED + row if number == 0 else None)
            learner = env.unwrapped.seat
            turns = game.turns_of(learner)
            for turn, following in zip(turns, [*turns[1:], None], strict=True):
                assert_same(seen, scaled(turn.seen[learner]))
                assert_same(info, {"action_mask": turn.mask})
                assert choose(counts(seen)[None], info["action_mask"][None])[0] == turn.action
                seen, reward, terminated, truncated, info = env.step(turn.action)
                if following is not None:
                    assert (reward, terminated, truncated) == (0.0, False, False)
            assert_same(seen, scaled(game.end.seen[learner]))
            assert (reward, terminated, truncated) == (game.rewards[learner], game.terminated, game.truncated)
            assert_same(info.pop("action_mask"), NO_MASK)
            assert info == pytest.approx(game.outcome(learner))


class Follower:
    """Walks through the transcript of one row of a vectorized shell, decision by decision of its learner."""

    def __init__(self, games: list[Transcript]) -> None:
        self._games: Iterator[Transcript] = iter(games)
        self.game: Transcript | None = None

    def begin(self, seat: int) -> None:
        """The next game; afterwards `game` is None when the transcript has no more."""
        self.game, self.seat = next(self._games, None), seat
        self._turns = iter(self.game.turns_of(seat) if self.game else [])
        self.turn: Moment | None = next(self._turns, None)

    def decided(self) -> None:
        """The learner's decision was made; `turn` is its next one, None at the end of the game."""
        self.turn = next(self._turns, None)

    @property
    def action(self) -> int:
        return self.turn.action if self.turn else 0


def begin_all(num_players: int, rules: str, seats: Any) -> list[Follower]:
    followers = [Follower(games) for games in told(num_players, rules)]
    for follower, seat in zip(followers, seats, strict=True):
        follower.begin(int(seat))
    return followers


@RULES
@PLAYERS
@SEAT
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_gymnasium_vector_env(num_players: int, rules: str, seat: int | str, mode: AutoresetMode) -> None:
    env = MonteCristoVectorEnv(GAMES, autoreset_mode=mode, **settings(num_players, rules, seat))
    seen, infos = env.reset(seed=SEED)
    followers = begin_all(num_players, rules, env.seats)
    for row, follower in enumerate(followers):
        assert_same(seen[row], scaled(follower.turn.seen[follower.seat]))
        assert_same(infos["action_mask"][row], follower.turn.mask)
    restarting = np.zeros(GAMES, bool)
    ended = 0
    while any(follower.game for follower in followers):
        masks = env.action_masks()
        acts = np.array(
            [follower.action if follower.game else masks[k].argmax() for k, follower in enumerate(followers)]
        )
        seen, rewards, terminated, truncated, infos = env.step(acts)
        for row, follower in enumerate(followers):
            game, learner = follower.game, follower.seat
            if restarting[row]:
                follower.begin(int(env.seats[row]))
                game, learner = follower.game, follower.seat
                restarting[row] = False
            elif game:
                follower.decided()
            if not game:
                continue
            if follower.turn:
                assert (rewards[row], terminated[row], truncated[row]) == (0.0, False, False)
                assert_same(seen[row], scaled(follower.turn.seen[learner]))
                assert_same(infos["action_mask"][row], follower.turn.mask)
                continue
            ended += 1
            assert (rewards[row], terminated[row], truncated[row]) == (
                game.rewards[learner],
                game.terminated,
                game.truncated,
            )
            final, outcome = seen[row], infos
            if mode is AutoresetMode.SAME_STEP:
                final, outcome = infos["final_obs"][row], infos["final_info"]
                follower.begin(int(env.seats[row]))
                if follower.turn:
                    assert_same(seen[row], scaled(follower.turn.seen[follower.seat]))
                    assert_same(infos["action_mask"][row], follower.turn.mask)
            else:
                restarting[row] = True
            assert_same(final, scaled(game.end.seen[learner]))
            assert_same(outcome["action_mask"][row], NO_MASK)
            assert {name: outcome[name][row] for name in game.outcome(learner)} == pytest.approx(game.outcome(learner))
    assert ended == GAMES * EACH


@RULES
@PLAYERS
@SEAT
def test_stable_baselines3_vec_env(num_players: int, rules: str, seat: int | str) -> None:
    pytest.importorskip("stable_baselines3")
    from montecristo_env.sb3 import MonteCristoVecEnv

    env = MonteCristoVecEnv(GAMES, **settings(num_players, rules, seat))
    env.seed(SEED)
    seen = env.reset()
    followers = begin_all(num_players, rules, env.get_attr("seat"))
    ended = 0
    while True:
        masks = env.action_masks()
        for row, follower in enumerate(followers):
            if follower.turn:
                assert_same(seen[row], scaled(follower.turn.seen[follower.seat]))
                assert_same(masks[row], follower.turn.mask.astype(bool))
        if not any(follower.game for follower in followers):
            break
        acts = np.array(
            [follower.action if follower.game else masks[k].argmax() for k, follower in enumerate(followers)]
        )
        seen, rewards, dones, infos = env.step(acts)
        for row, follower in enumerate(followers):
            game, learner = follower.game, follower.seat
            if not game:
                continue
            follower.decided()
            assert dones[row] == (follower.turn is None)
            assert rewards[row] == np.float32(game.rewards[learner] if dones[row] else 0.0)
            if dones[row]:
                info = infos[row]
                assert_same(info["terminal_observation"], scaled(game.end.seen[learner]))
                assert info["TimeLimit.truncated"] is game.truncated
                assert {name: info[name] for name in game.outcome(learner)} == pytest.approx(game.outcome(learner))
                assert info["episode"]["r"] == game.rewards[learner]
                assert info["episode"]["l"] == len(game.turns_of(learner))
                ended += 1
                follower.begin(env.get_attr("seat", indices=row)[0])
    assert ended == GAMES * EACH


@RULES
@PLAYERS
def test_openspiel(num_players: int, rules: str) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    from montecristo_env.openspiel import SeededChance

    limit = RULESETS[rules].round_limit
    spiel = pyspiel.load_game(f"python_montecristo(players={num_players},reward=rank,round_limit={limit})")
    for row, games in enumerate(told(num_players, rules)):
        chance = SeededChance(SEED + row)
        for game in games:
            state = spiel.new_initial_state()
            for moment in game.moments:
                while state.is_chance_node():
                    state.apply_action(chance(state))
                for seat in range(num_players):
                    assert_same(np.array(state.observation_tensor(seat), np.float32), scaled(moment.seen[seat]))
                if moment is game.end:
                    break
                assert state.current_player() == moment.player
                assert_same(np.array(state.legal_actions_mask(), np.int8), moment.mask)
                assert state.rewards() == [0.0] * num_players
                state.apply_action(moment.action)
            assert state.is_terminal() and state.returns() == pytest.approx(game.rewards)


@RULES
@PLAYERS
def test_torchrl(num_players: int, rules: str) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchrl")
    from montecristo_env.torchrl import MonteCristoTorchEnv

    seeds = np.array([seed_of_game(SEED + row) for row in range(GAMES)], np.uint64)
    env = MonteCristoTorchEnv(GAMES, num_players, seeds, RULESETS[rules], "rank")
    games = told(num_players, rules)
    waiting = [[(game, place) for game in row for place in range(len(game.moments) - 1)] for row in games]
    step = env.reset()
    ended = 0
    while any(waiting):
        acts = step["action_mask"].int().argmax(-1)
        for row, moments in enumerate(waiting):
            if moments:
                game, place = moments[0]
                moment = game.moments[place]
                assert step["current_player"][row].item() == moment.player
                assert_same(step["observation"][row].numpy(), scaled(moment.seen[moment.player]))
                assert_same(step["action_mask"][row].numpy(), moment.mask.astype(bool))
                acts[row] = moment.action
        step["action"] = acts
        stepped, step = env.step_and_maybe_reset(step)
        for row, moments in enumerate(waiting):
            if not moments:
                continue
            game, place = moments.pop(0)
            after = stepped["next"][row]
            over = game.moments[place + 1] is game.end
            rewards = game.rewards if over else [0.0] * num_players
            assert torch.equal(after["agents", "reward"].squeeze(-1), torch.tensor(rewards))
            flags = [after[name].item() for name in ("terminated", "truncated", "done")]
            assert flags == ([game.terminated, game.truncated, True] if over else [False] * 3)
            if over:
                assert_same(after["observation"].numpy(), scaled(game.end.seen[0]))
                ended += 1
    assert ended == GAMES * EACH


@RULES
@PLAYERS
def test_text(num_players: int, rules: str) -> None:
    for row, (told_first, *_) in enumerate(told(num_players, rules)):
        game = TextGame(num_players, SEED + row, ruleset=RULESETS[rules], reward="rank")
        for moment in told_first.moments:
            assert game.current_player == moment.player
            assert game.legal_moves == [str(actions.decode(code)) for code in np.flatnonzero(moment.mask)]
            if moment is told_first.end:
                break
            assert game.rewards == [0.0] * num_players
            assert describe(game.games) in game.prompt()
            game.play(str(actions.decode(moment.action)))
        assert (game.rewards, game.scores) == (told_first.rewards, told_first.scores)
