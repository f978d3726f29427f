"""Checkpoints: everything that a run needs to go on as if nothing had happened, in one file without code."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from sb3_contrib import MaskablePPO

from montecristo_agents.policy import Network, PolicyAgent
from montecristo_env.errors import InvalidArgument
from montecristo_env.files import write_whole
from montecristo_train.pool import Opponent
from montecristo_train.selfplay import SelfPlayVecEnv

FORMAT = 1
PAST_SELF_TEMPERATURE = 1.0  # past selves play as they did, not only their best moves


def past_self(network: Network) -> PolicyAgent:
    """How a past self plays."""
    return PolicyAgent(network, temperature=PAST_SELF_TEMPERATURE)


def write_checkpoint(path: Path, model: MaskablePPO, env: SelfPlayVecEnv, extra: dict[str, Any]) -> None:
    """Writes model, optimiser, pool, games, counters and random states; an older file stays if something fails."""
    tensors = {f"policy.{name}": tensor.numpy() for name, tensor in model.policy.state_dict().items()}
    optimiser = model.policy.optimizer.state_dict()
    for place, state in optimiser["state"].items():
        tensors |= {f"optimiser.{place}.{name}": tensor.numpy() for name, tensor in state.items()}
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
        pool.append({"name": member.agent.name, "past_self": member.past_self} | _results(member))
    facts = {
        "format": FORMAT,
        "steps": model.num_timesteps,
        "updates": model._n_updates,
        "numpy_random": [kind, int(position), int(has_gauss), float(gauss)],
        "env_random": env.rng.bit_generator.state,
        "pool": pool,
    }
    content = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    write_whole(path, save(content, {"facts": json.dumps(facts | extra)}))


def _results(member: Opponent) -> dict[str, float]:
    return {"games": member.games, "wins": member.wins, "rating": member.rating}


def read_checkpoint(path: Path, model: MaskablePPO, env: SelfPlayVecEnv, hidden: tuple[int, ...]) -> dict[str, Any]:
    """Puts everything back as it was, and returns the facts that were kept with it."""
    try:
        with safe_open(path, framework="np") as file:
            facts: dict[str, Any] = json.loads(file.metadata()["facts"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    except (OSError, SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise InvalidArgument(f"{path} is no checkpoint that can be read: {error}") from None
    if facts.get("format") != FORMAT:
        raise InvalidArgument(f"{path} has the format {facts.get('format')}, but this version reads {FORMAT}")
    model.policy.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in _below(tensors, "policy").items()})
    optimiser = model.policy.optimizer.state_dict()
    optimiser["state"] = {}
    for name, tensor in _below(tensors, "optimiser").items():
        place, _, key = name.partition(".")
        optimiser["state"].setdefault(int(place), {})[key] = torch.from_numpy(tensor)
    model.policy.optimizer.load_state_dict(optimiser)
    model.num_timesteps, model._n_updates = facts["steps"], facts["updates"]
    env.games.states.view(np.uint8).reshape(len(env.games), -1)[:] = tensors["games"]
    env.holders[:] = tensors["holders"]
    env.rng.bit_generator.state = facts["env_random"]
    scripted = {member.agent.name: member.agent for member in env.pool.members}
    env.pool.members = []
    for number, kept in enumerate(facts["pool"]):
        agent = (
            past_self(Network(hidden, _below(tensors, f"pool.{number}"), advised=env.advised))
            if kept["past_self"]
            else None
        )
        results = {name: kept[name] for name in ("games", "wins", "rating")}
        member = Opponent(agent or scripted[kept["name"]], kept["past_self"], **results)
        env.pool.members.append(member)
    torch.set_rng_state(torch.from_numpy(tensors["torch_random"]))
    kind, position, has_gauss, gauss = facts["numpy_random"]
    np.random.set_state((kind, tensors["numpy_random"], position, has_gauss, gauss))  # noqa: NPY002
    return facts


def _below(tensors: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Those whose names begin so, without that beginning."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}
