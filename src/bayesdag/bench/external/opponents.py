"""Runs one opponent on one data set, in an interpreter of its own that has it installed.

Started by suites (`linear`, `rivals`, `published_settings`, `dibs_package`, `ges_package`,
`kinds_of_columns`): reads `x`, and the kinds of its columns, from an .npz file and writes edge
probabilities and, where there are draws or one DAG, graphs. The package under test does not depend
on any of these libraries; each runs with its own defaults unless a setting is given.

`opponents.py --lacking` prints, for every program, the packages that this interpreter lacks.
"""

import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

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
    return marked(found.graph)


def grasp(x: np.ndarray, settings: dict) -> dict:
    """GRaSP of causal-learn."""
    from causallearn.search.PermutationBased.GRaSP import grasp as search

    found = search(x, parameters={"lambda_value": float(settings["penalty"])}, verbose=False)
    return marked(found.graph)


def ges(x: np.ndarray, settings: dict) -> dict:
    """GES of causal-learn, forward and backward; a penalty of ½ is BIC (since 0.1.4.8)."""
    from causallearn.search.ScoreBased.GES import ges as search

    parameters = {"lambda_value": float(settings["penalty"])}
    return marked(search(x, "local_score_BIC_from_cov", parameters=parameters)["G"].graph)


def ges_bdeu(x: np.ndarray, settings: dict) -> dict:
    """GES of causal-learn with BDeu, for columns of codes."""
    from causallearn.search.ScoreBased.GES import ges as search

    del settings
    return marked(search(codes(x), "local_score_BDeu")["G"].graph)


def boss_bdeu(x: np.ndarray, settings: dict) -> dict:
    """BOSS of causal-learn with BDeu, for columns of codes."""
    from causallearn.search.PermutationBased.BOSS import boss as search

    del settings
    return marked(search(codes(x), "local_score_BDeu", verbose=False).graph)


def ges_conditional_gaussian(x: np.ndarray, settings: dict) -> dict:
    """GES of pgmpy with the BIC of conditional Gaussian families, for columns of any kind."""
    from pgmpy.causal_discovery import GES
    from pgmpy.structure_score import BICCondGauss

    frame = labelled(x, settings["kinds"])
    found = GES(scoring_method=BICCondGauss(frame)).fit(frame).causal_graph_
    edge = np.zeros((x.shape[1],) * 2)
    for i, j in found.directed_edges:
        edge[int(i), int(j)] = 1
    for i, j in found.undirected_edges:
        edge[int(i), int(j)] = edge[int(j), int(i)] = 0.5
    return {"edge": edge, "cpdag": (edge > 0).astype(np.int8)}


def pc_rcit(x: np.ndarray, settings: dict) -> dict:
    """PC of causal-learn with its randomised kernel test, which asks for no distribution."""
    from causallearn.search.ConstraintBased.PC import pc

    return marked(pc(x, float(settings["alpha"]), "rcit", show_progress=False).G.graph)


def labelled(x: np.ndarray, kinds: list[str]):
    """A frame of measurements and categories; columns are called by their numbers."""
    import pandas as pd

    frame = pd.DataFrame(x, columns=[str(j) for j in range(x.shape[1])])
    for j, kind in enumerate(kinds):
        if kind in {"binary", "ordinal", "categorical"}:
            frame[str(j)] = pd.Categorical(codes(x[:, [j]])[:, 0], ordered=kind == "ordinal")
    return frame


def codes(x: np.ndarray) -> np.ndarray:
    """Whole numbers from 0 on, whatever the unit of the columns."""
    found = [np.unique(np.round(column, 9), return_inverse=True)[1] for column in x.T]
    return np.stack(found, axis=1)


def lingam(x: np.ndarray, settings: dict) -> dict:
    """DirectLiNGAM; its matrix has effects in rows."""
    from lingam import DirectLiNGAM

    del settings
    model = DirectLiNGAM()
    model.fit(x)
    return single(model.adjacency_matrix_.T != 0)


def dagma(x: np.ndarray, settings: dict) -> dict:
    """DAGMA with one network per variable; weights below its threshold 0.3 are no edges."""
    import torch
    from dagma.nonlinear import DagmaMLP, DagmaNonlinear

    torch.manual_seed(0)
    torch.set_default_dtype(torch.double)
    network = DagmaMLP(dims=[x.shape[1], int(settings["hidden"]), 1], bias=True, dtype=torch.double)
    return single(DagmaNonlinear(network, dtype=torch.double).fit(x, lambda1=0.02, lambda2=0.005))


def notears_mlp(x: np.ndarray, settings: dict) -> dict:
    """NOTEARS with networks, of gcastle."""
    from castle.algorithms import NotearsNonlinear

    del settings
    model = NotearsNonlinear(model_type="mlp", device_type="cpu")
    model.learn(x)
    return single(np.asarray(model.causal_matrix))


def gran_dag(x: np.ndarray, settings: dict) -> dict:
    """GraN-DAG of gcastle."""
    from castle.algorithms import GraNDAG

    model = GraNDAG(input_dim=x.shape[1], iterations=int(settings.get("iterations", 10_000)))
    model.learn(x)
    return single(np.asarray(model.causal_matrix))


def sdcd(x: np.ndarray, settings: dict) -> dict:
    """SDCD, observational data; its training must not report to a server."""
    os.environ["WANDB_MODE"] = "disabled"
    import pandas as pd
    from sdcd.models import SDCD
    from sdcd.utils import create_intervention_dataset

    del settings
    frame = pd.DataFrame(x, columns=[str(i) for i in range(x.shape[1])])
    frame["perturbation_label"] = "obs"
    model = SDCD()
    model.train(
        create_intervention_dataset(frame, perturbation_colname="perturbation_label"),
        finetune=True,
    )
    return single(np.asarray(model.get_adjacency_matrix(threshold=True)))


def dibs_lib(x: np.ndarray, settings: dict) -> dict:
    """Joint DiBS of its authors, linear functions; draws with cycles are left out.

    `shift` moves weights away from zero at the start, and there alone.
    """
    from dibs.inference import JointDiBS
    from dibs.models import LinearGaussian

    variance, shift = float(settings["variance"]), float(settings.get("shift", 0.5))
    model = LinearGaussian(n_vars=x.shape[1], obs_noise=variance, min_edge=shift)
    return particles(JointDiBS, model, x, settings)


def dibs_lib_marginal(x: np.ndarray, settings: dict) -> dict:
    """Marginal DiBS of its authors: BGe; draws with cycles are left out."""
    from dibs.inference import MarginalDiBS
    from dibs.models import BGe

    return particles(MarginalDiBS, BGe(n_vars=x.shape[1]), x, settings)


def particles(inference: Callable, model: object, x: np.ndarray, settings: dict) -> dict:
    """Graphs of each of several runs of DiBS, which share what is compiled.

    `edge` and `graphs` are those of the first run, `run_edge` and `num_cyclic` those of all.
    """
    import jax
    from dibs.models import ErdosReniDAGDistribution

    d = x.shape[1]
    prior = ErdosReniDAGDistribution(n_vars=d, n_edges_per_node=int(settings.get("edges", 2)))
    sampler = inference(x=x, interv_mask=None, graph_model=prior, likelihood_model=model)
    num, steps = int(settings["particles"]), int(settings["steps"])
    runs = []
    for seed in range(int(settings.get("runs", 1))):
        drawn = sampler.sample(key=jax.random.PRNGKey(seed), n_particles=num, steps=steps)
        drawn = drawn[0] if isinstance(drawn, tuple) else drawn  # joint: graphs and functions
        graphs = np.asarray(drawn).astype(np.int8)
        cyclic = [np.linalg.matrix_power(graph.astype(float), d).any() for graph in graphs]
        runs.append(graphs[~np.array(cyclic)])
    return {
        "graphs": runs[0],
        "edge": runs[0].mean(axis=0),
        "run_edge": np.stack([graphs.mean(axis=0) for graphs in runs]),
        "num_cyclic": np.array([num - len(graphs) for graphs in runs]),
    }


def marked(marks: np.ndarray) -> dict:
    """A class in causal-learn's marks; undirected edges half and half.

    [j, i] = 1 and [i, j] = -1 stands for i -> j, both -1 for an undirected edge.
    """
    directed = (marks == -1) & (marks.T == 1)
    undirected = (marks == -1) & (marks.T == -1)
    return {"edge": directed + 0.5 * undirected, "cpdag": (directed | undirected).astype(np.int8)}


def single(matrix: np.ndarray) -> dict:
    """One graph, rows causes and columns effects."""
    graph = (np.asarray(matrix) != 0).astype(np.int8)
    return {"edge": graph.astype(float), "graphs": graph[None]}


# What pip calls the packages of each program; the version of the first is recorded.
PACKAGES = {
    "gadget": ("sumu",),
    "boss": ("causal-learn",),
    "grasp": ("causal-learn",),
    "ges": ("causal-learn",),
    "ges_bdeu": ("causal-learn",),
    "boss_bdeu": ("causal-learn",),
    "ges_conditional_gaussian": ("pgmpy",),
    "pc_rcit": ("causal-learn",),
    "lingam": ("lingam",),
    "dagma": ("dagma", "torch"),
    "notears_mlp": ("gcastle", "torch"),
    "gran_dag": ("gcastle", "torch"),
    "sdcd": ("sdcd", "torch"),
    "dibs_lib": ("dibs-lib",),
    "dibs_lib_marginal": ("dibs-lib",),
}
# Imported before the clock starts.
MODULES = {
    "gadget": "sumu",
    "boss": "causallearn.search.PermutationBased.BOSS",
    "grasp": "causallearn.search.PermutationBased.GRaSP",
    "ges": "causallearn.search.ScoreBased.GES",
    "ges_bdeu": "causallearn.search.ScoreBased.GES",
    "boss_bdeu": "causallearn.search.PermutationBased.BOSS",
    "ges_conditional_gaussian": "pgmpy.causal_discovery",
    "pc_rcit": "causallearn.search.ConstraintBased.PC",
    "lingam": "lingam",
    "dagma": "dagma.nonlinear",
    "notears_mlp": "castle.algorithms",
    "gran_dag": "castle.algorithms",
    "sdcd": "sdcd.models",
    "dibs_lib": "dibs.inference",
    "dibs_lib_marginal": "dibs.inference",
}
PROGRAMS = {
    "gadget": gadget,
    "boss": boss,
    "grasp": grasp,
    "ges": ges,
    "ges_bdeu": ges_bdeu,
    "boss_bdeu": boss_bdeu,
    "ges_conditional_gaussian": ges_conditional_gaussian,
    "pc_rcit": pc_rcit,
    "lingam": lingam,
    "dagma": dagma,
    "notears_mlp": notears_mlp,
    "gran_dag": gran_dag,
    "sdcd": sdcd,
    "dibs_lib": dibs_lib,
    "dibs_lib_marginal": dibs_lib_marginal,
}


def lacking() -> dict[str, list[str]]:
    """Packages of each program that are not installed in this interpreter."""
    return {
        program: [package for package in packages if not installed(package)]
        for program, packages in PACKAGES.items()
    }


def installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def stop_with_parent(every: float = 1.0) -> None:
    """End this process when the one that started it has ended: nobody waits for the answer."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    if sys.argv[1:] == ["--lacking"]:
        sys.stdout.write(json.dumps(lacking()))
        return
    stop_with_parent()
    name, source, target = sys.argv[1:4]
    settings = dict(item.split("=") for item in sys.argv[4:])
    with np.load(source) as given:
        x, settings["kinds"] = given["x"], given["kinds"].tolist()
    importlib.import_module(MODULES[name])
    np.random.seed(0)  # noqa: NPY002 - the libraries draw from the global generator
    started, cpu = time.perf_counter(), time.process_time()
    found = PROGRAMS[name](x, settings)
    spent = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
    np.savez(target, **spent, package_version=version(PACKAGES[name][0]), **found)


if __name__ == "__main__":
    main()
