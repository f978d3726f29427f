"""AlphaZero's self-play on Ray: machines that play, and machines that die."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray", reason="needs pip install 'montecristo-env[rllib]'")

import ray
from ray.cluster_utils import Cluster

from montecristo_train.alphazero import train
from montecristo_train.ray_workers import RayWorkers
from montecristo_train.runs import new_folder
from montecristo_train.workers import make_self_play
from test_alphazero import TINY, weights

SMALL = 150_000_000  # bytes for Ray's object store
LONG = 300.0  # seconds that a busy machine may need
ON_RAY = replace(TINY, ray=True, n_workers=2)


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    make_self_play(TINY, 0, 0)  # Ray's processes have low priority: on a busy machine they would compile for long


def test_play_goes_on_when_a_machine_dies() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": SMALL})
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=SMALL) for _ in range(2)]
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        workers = RayWorkers(ON_RAY, 0)
        where = ray.get([actor.node.remote() for actor in workers.actors])
        assert sorted(where) == sorted(node.node_id for node in nodes)
        for _ in range(4):
            assert len(workers.collect(weights(), 0)[0].states) >= ON_RAY.n_steps
        cluster.remove_node(nodes[0], allow_graceful=False)
        for _ in range(4):  # the other one plays on
            positions, facts = workers.collect(weights(), 0)
            assert len(positions.states) >= ON_RAY.n_steps and facts["games"] >= 1
        new = cluster.add_node(num_cpus=1, object_store_memory=SMALL)
        lost = workers.actors[where.index(nodes[0].node_id)]
        until = time.monotonic() + LONG
        while time.monotonic() < until:  # a call that waits for the lost one to come back
            found, _ = ray.wait([lost.node.remote()], timeout=5.0)
            if found and ray.get(found[0]) == new.node_id:
                break
        else:
            pytest.fail("the lost actor did not begin anew on the new machine")
        workers.close()
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_a_run_on_ray_trains_and_leaves_no_cluster(tmp_path: Path) -> None:
    new_folder(tmp_path / "run", ON_RAY)
    network = train(ON_RAY, tmp_path / "run")
    assert network.training["steps"] >= ON_RAY.total_timesteps
    assert all(np.isfinite(tensor).all() for tensor in network.tensors.values())
    assert not ray.is_initialized()


def test_without_ray_it_says_what_to_install(tmp_path: Path) -> None:
    code = """
import sys; sys.modules['ray'] = None
from montecristo_env.util.commands import run_command
from montecristo_train.alphazero import main
run_command(main, sys.argv[1:])
"""
    command = [sys.executable, "-c", code, "smoke", "--ray", "--run", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode and "training on Ray needs ray: pip install 'montecristo-env[rllib]'" in done.stderr
    assert "Traceback" not in done.stderr
