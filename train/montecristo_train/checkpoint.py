"""Checkpoints: everything that a run needs to go on as if nothing had happened, in one file without code."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from sb3_contrib import MaskablePPO

from montecristo_agents.entity import EntityNetwork, Sizes
from montecristo_agents.models import checksum
from montecristo_agents.policy import PolicyAgent
from montecristo_env import GameBatch
from montecristo_env.errors import InvalidArgument, MonteCristoError
from montecristo_env.util.files import atomic_write
from montecristo_train.pool import Opponent
from montecristo_train.selfplay import LEARNER, SelfPlayVecEnv

FORMAT = 3
"""The version of the files that this module writes and reads."""
PAST_SELF_TEMPERATURE = 1.0  # past selves play as they did, not only their best moves
_SETTINGS = ("num_players", "deck", "tokens", "card_adventurers", "market_values", "target", "round_limit")  # of a row


Arrays = dict[str, np.ndarray]


def past_self(network: EntityNetwork) -> PolicyAgent:
    """How a past self plays."""
    return PolicyAgent(network, temperature=PAST_SELF_TEMPERATURE)


def write_checkpoint(path: Path, model: MaskablePPO, env: SelfPlayVecEnv, extra: dict[str, Any]) -> None:
    """Writes model, optimiser, pool, games, counters and random states; an older file stays if something fails."""
    tensors = {f"policy.{name}": values for name, values in _arrays(model.policy.state_dict()).items()}
    optimiser = model.policy.optimizer.state_dict()
    for place, state in optimiser["state"].items():
        tensors |= {f"optimiser.{place}.{name}": values for name, values in _arrays(state).items()}
    kind, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002 (Stable-Baselines3 uses it)
    tensors |= {
        "torch_random": torch.get_rng_state().numpy(),
        "numpy_random": np.asarray(keys),
        "games": env.games.states.view(np.uint8).reshape(len(env.games), -1),
        "holders": env.holders,
    }
    pool = []
    for place, member in enumerate(env.pool.members):
        if member.past_self:
            network = member.agent.network  # type: ignore[attr-defined]
            tensors |= {f"pool.{place}.{name}": np.asarray(tensor) for name, tensor in network.tensors.items()}
        results = {"games": member.games, "wins": member.wins}
        pool.append({"name": member.agent.name, "past_self": member.past_self} | results)
    facts = {
        "format": FORMAT,
        "steps": model.num_timesteps,
        "numpy_random": [kind, int(position), int(has_gauss), float(gauss)],
        "env_random": env.rng.bit_generator.state,
        "pool": pool,
    }
    content = {name: np.array(tensor, order="C") for name, tensor in tensors.items()}
    header = {"facts": json.dumps(facts | extra)}
    atomic_write(path, save(content, header | {"checksum": checksum(header, content)}))


def read_checkpoint(path: Path, model: MaskablePPO, env: SelfPlayVecEnv, sizes: Sizes) -> dict[str, Any]:
    """Puts everything back as it was, and returns the facts that were kept with it.

    A file that is damaged, or that was written by a run with other settings, is refused, and nothing changes.
    """
    try:
        facts, tensors = _read(path)
        policy = _alike(_below(tensors, "policy"), _arrays(model.policy.state_dict()), "policy")
        optimiser = _optimiser(_below(tensors, "optimiser"), model)
        rows = env.games.states.view(np.uint8).reshape(len(env.games), -1)
        tables = {name: tensors[name] for name in ("games", "holders")}
        _alike(tables, {"games": rows, "holders": env.holders}, "tables")
        games = _games(tables["games"], env)
        pool = _pool(facts["pool"], tensors, env, sizes)
        holders = _holders(tables["holders"], games, len(pool))
        steps = _whole(facts["steps"], "steps")
        if not all(isinstance(rate, float) and math.isfinite(rate) for rate in facts["latest"].values()):
            raise InvalidArgument(f"win rates must be finite numbers, but are {facts['latest']}")
        kind, *others = facts["numpy_random"]
        numpy_random, torch_random = (kind, tensors["numpy_random"], *others), torch.from_numpy(tensors["torch_random"])
        # A generator refuses a state that is none, so they are tried out on others first.
        np.random.RandomState().set_state(numpy_random)
        torch.Generator().set_state(torch_random)
        type(env.rng.bit_generator)().state = facts["env_random"]
    except (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        said = str(error) if isinstance(error, MonteCristoError) else f"{type(error).__name__}: {error}"
        raise InvalidArgument(f"{path} is no checkpoint that this run can go on from: {said}") from None
    model.policy.load_state_dict({name: torch.from_numpy(values) for name, values in policy.items()})
    model.policy.optimizer.load_state_dict(optimiser)
    model.num_timesteps = steps
    env.games.states[:] = games.states
    env.holders[:] = holders
    env.pool.members, env.pool.guest = pool, None
    env.rng.bit_generator.state = facts["env_random"]
    torch.set_rng_state(torch_random)
    np.random.set_state(numpy_random)  # noqa: NPY002
    return facts


def _read(path: Path) -> tuple[dict[str, Any], Arrays]:
    """What is in a file, if it is the one that was written."""
    try:
        with safe_open(path, framework="np") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    except SafetensorError as error:
        raise InvalidArgument(f"it cannot be read ({error})") from None
    facts = json.loads(header.get("facts", "{}"))
    if facts.get("format") != FORMAT:
        raise InvalidArgument(f"it has the format {facts.get('format')}, but this version reads {FORMAT}")
    if header.get("checksum") != checksum(header, tensors):
        raise InvalidArgument("it is damaged, its checksum is not that of its content")
    return facts, tensors


def _arrays(state: Mapping[str, torch.Tensor]) -> Arrays:
    return {name: tensor.numpy() for name, tensor in state.items()}


def _whole(value: object, name: str) -> int:
    if type(value) is not int or value < 0:
        raise InvalidArgument(f"{name} must be a whole number from 0, but is {value!r}")
    return value


def _alike(found: Arrays, wanted: Arrays, part: str) -> Arrays:
    """The arrays, if they have the names, shapes and dtypes of those that they shall replace, and are finite."""
    if found.keys() != wanted.keys():
        raise InvalidArgument(f"its {part} has not the parts of this run's: {sorted(found.keys() ^ wanted.keys())}")
    for name, expected in wanted.items():
        values = found[name]
        if (values.dtype, values.shape) != (expected.dtype, expected.shape):
            raise InvalidArgument(
                f"{part}.{name} must be {expected.dtype} of shape {expected.shape}, as this run's settings have it, "
                f"but is {values.dtype} of shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise InvalidArgument(f"{part}.{name} has values that are not finite")
    return found


def _optimiser(tensors: Arrays, model: MaskablePPO) -> dict[str, Any]:
    """The state of the optimiser; it has none before the first update."""
    state = model.policy.optimizer.state_dict()
    wanted: Arrays = {}
    if tensors:
        for place, parameter in enumerate(model.policy.optimizer.param_groups[0]["params"]):
            weights = parameter.detach().numpy()
            wanted |= {f"{place}.step": np.zeros((), np.float32)}
            wanted |= {f"{place}.{name}": weights for name in ("exp_avg", "exp_avg_sq")}
    state["state"] = {}
    for name, values in _alike(tensors, wanted, "optimiser").items():
        number, _, key = name.partition(".")
        state["state"].setdefault(int(number), {})[key] = torch.from_numpy(values)
    return state


def _games(rows: np.ndarray, env: SelfPlayVecEnv) -> GameBatch:
    """Games that go on where these rows are; they are those of this run, and every one of them is sane."""
    games = env.games.copy()
    games.states.view(np.uint8)[:] = rows.ravel()
    for name in _SETTINGS:
        if not np.array_equal(games.states[name], env.games.states[name]):
            raise InvalidArgument(f"its games have another {name} than those of this run")
    if failed := games.violations():
        game, checks = next(iter(failed.items()))
        raise InvalidArgument(f"{len(failed)} of its games are not sane; in game {game} these are not: {checks}")
    if games.over.any():
        raise InvalidArgument(f"its game {int(games.over.argmax())} is over, so nobody can go on with it")
    return games


def _holders(holders: np.ndarray, games: GameBatch, members: int) -> np.ndarray:
    """Who holds which seat: the learner at least one of every game, members of the pool any others."""
    seated = np.arange(holders.shape[-1]) < games.num_players[:, None]
    free = holders == LEARNER
    if not (free | seated).all() or not (free & seated).any(axis=1).all():
        raise InvalidArgument(
            "holders must leave a seat of every game to the learner, and have no seat that is not there"
        )
    if holders.min() < LEARNER or holders.max() >= members:
        raise InvalidArgument(f"holders must be places of the pool, which has {members}")
    return holders


def _pool(kept: list[dict[str, Any]], tensors: Arrays, env: SelfPlayVecEnv, sizes: Sizes) -> list[Opponent]:
    """The members of the pool: past selves from the file, other agents those that are there."""
    agents = [member.agent for member in env.pool.members if not member.past_self]
    names = [one["name"] for one in kept if not one["past_self"]]
    if names != [agent.name for agent in agents]:
        raise InvalidArgument(f"its opponents are {names}, but this run's are {[agent.name for agent in agents]}")
    left = iter(agents)
    members = []
    for number, one in enumerate(kept):
        results = {name: float(one[name]) for name in ("games", "wins")}
        if not all(map(math.isfinite, results.values())):
            raise InvalidArgument(f"the results of pool.{number} must be finite, but are {results}")
        if one["past_self"]:
            network = EntityNetwork(sizes, _below(tensors, f"pool.{number}"))
            members.append(Opponent(past_self(network), True, **results))
        else:
            members.append(Opponent(next(left), False, **results))
    return members


def _below(tensors: Arrays, prefix: str) -> Arrays:
    """Those whose names begin so, without that beginning."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}
