"""Runs one opponent on one data set, in an interpreter of its own that has it installed.

Started by the suite `linear`: reads `x` from an .npz file and writes edge probabilities and, where
there are draws, graphs. The package under test does not depend on any of these libraries.
"""

import sys
import time

import numpy as np


def gadget(x: np.ndarray, settings: dict) -> dict:
    """Partition MCMC of sumu: BGe, fair prior, graph-modular."""
    import sumu

    d = x.shape[1]
    sampler = sumu.Gadget(
        data=sumu.Data(x, discrete=False),
        scoref="bge",
        max_id=-1,
        K=min(d - 1, int(settings["candidates"])),
        d=2,
        cp_algo="greedy-lite",
        mc3_chains=int(settings["chains"]),
        burn_in=int(settings["iterations"]),
        iterations=int(settings["iterations"]),
        thinning=max(1, int(settings["iterations"]) // 500),
        tolerance=2 ** (-32),
    )
    dags, _ = sampler.sample()
    graphs = np.zeros((len(dags), d, d), dtype=np.int8)
    for graph, dag in zip(graphs, dags, strict=True):
        for node, *parents in dag:
            graph[list(parents[0]) if parents else [], node] = 1
    return {"graphs": graphs, "edge": graphs.mean(axis=0)}


def boss(x: np.ndarray, settings: dict) -> dict:
    """BOSS of causal-learn; one equivalence class, undirected edges half and half."""
    from causallearn.search.PermutationBased.BOSS import boss as search

    found = search(x, parameters={"lambda_value": float(settings["penalty"])}, verbose=False)
    marks = found.graph  # [j, i] = 1 and [i, j] = -1: i -> j; both -1: undirected
    directed = (marks == -1) & (marks.T == 1)
    undirected = (marks == -1) & (marks.T == -1)
    return {"edge": directed + 0.5 * undirected, "cpdag": (directed | undirected).astype(np.int8)}


def main() -> None:
    name, source, target = sys.argv[1:4]
    settings = dict(item.split("=") for item in sys.argv[4:])
    x = np.load(source)["x"]
    np.random.seed(0)  # noqa: NPY002 - the libraries draw from the global generator
    started, cpu = time.perf_counter(), time.process_time()
    found = {"gadget": gadget, "boss": boss}[name](x, settings)
    spent = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
    np.savez(target, **spent, **found)


if __name__ == "__main__":
    main()
