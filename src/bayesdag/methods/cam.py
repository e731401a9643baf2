"""CAM with a bootstrap: sums of smooth functions, one graph per sample of the rows."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int8

from bayesdag.baselines import additive, bootstrap, cam
from bayesdag.baselines.additive import AdditiveStats, SplineBasis
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.model.mechanisms.splines import AdditiveSplines, curvature_matrix
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.posterior import Posterior, from_draws
from bayesdag.runs.recording import recorder_of
from bayesdag.types import Array, Duration, ExactDependence, Key, Monitor, PlainData

MIN_ROWS = 20
MANY = 20  # variables; with more, candidate parents are selected first
FEW_CANDIDATES = 10
ROWS_PER_COEFFICIENT = 3
_PARTS = ("members", "values", "curvatures", "bias")


@dataclass(frozen=True)
class CAM:
    """Causal additive models: greedy order, significant parents; a bootstrap as posterior.

    Every variable is a sum of smooth functions of its parents, with Gaussian noise. One order
    and its functions are estimated from each bootstrap sample of the rows; the spread over
    samples stands for a posterior. Parents are tested on all rows: in a sample, rows that
    occur twice make the noise in them look like evidence. On linear Gaussian rows no order is
    better than another and directions mean nothing.

    Attributes:
        num_samples: bootstrap samples, one draw each.
        num_basis: functions of each spline, the straight line included; fewer where that
            would leave less than three rows per coefficient of a full regression.
        max_candidates: parents that are considered for each variable; None: all, or the 10
            that explain it best where there are more than 20 variables.
        cutoff: p-value above which a parent is pruned.

    References:
        Bühlmann, Peters, Ernest: CAM: causal additive models, high-dimensional order search
        and penalized regression. Annals of Statistics 2014.
    """

    supported_constraints = frozenset({"required", "forbidden", "environments"})
    supports_interventions = True
    exact_dependence = ExactDependence.AVERAGED

    num_samples: int = 100
    num_basis: int = 8
    max_candidates: int | None = None
    cutoff: float = 0.001

    def __post_init__(self) -> None:
        if self.num_basis < 2:
            raise InputError(f"num_basis is {self.num_basis}; it must be 2 or more")
        if self.max_candidates is not None and self.max_candidates < 1:
            raise InputError(f"max_candidates is {self.max_candidates}; it must be 1 or more")
        if not 0 < self.cutoff <= 1:
            raise InputError(f"cutoff is {self.cutoff:g}; it must be above 0 and at most 1")

    def min_rows(self, d: int) -> int:
        """Three rows for each coefficient of the largest regression, with two per parent."""
        return max(MIN_ROWS, ROWS_PER_COEFFICIENT * 2 * self._most(d))

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """A quarter of a millisecond per pair of variables and sample."""
        del num_rows  # they are looked at once
        seconds = 2.5e-4 * num_variables**2 * self.num_samples
        return Duration(seconds, ("fewer samples (num_samples)", "a smaller num_basis"))

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """One graph with its functions for each bootstrap sample."""
        most = self._most(data.num_variables)
        basis = additive.spline_basis(data.scaled, self._basis_size(data))
        features = basis.features(data.scaled)
        whole = additive.additive_stats(basis, features, data.observed)

        def estimate(rng: np.random.Generator, rows: np.ndarray) -> dict[str, np.ndarray]:
            del rng  # nothing is random but the rows
            stats = additive.additive_stats(basis, features[rows], data.observed[rows])
            edges = cam.search(stats, knowledge, most)
            graph = cam.pruned(whole, edges, knowledge, self.cutoff)
            return {"graph": graph, **_functions(stats, basis, graph, data.scaled)}

        recorder = recorder_of(monitor)
        found = bootstrap.estimates(key, data, knowledge, self.num_samples, recorder, estimate)
        graphs = bootstrap.stacked(found, "graph")
        knots = np.broadcast_to(basis.knots, (len(found), *basis.knots.shape))
        order = cam.search(whole, knowledge, most)
        mechanism = {name: bootstrap.stacked(found, name)[None] for name in _PARTS}
        noise = {"log_scale": bootstrap.stacked(found, "log_scale")[None]}
        return from_draws(
            graphs[None],
            SCM(AdditiveSplines(basis.knots.shape[1]), Gaussian(), data.scaling),
            {"mechanism": {**mechanism, "knots": knots[None]}, "noise": noise},
            data,
            log_joint=np.array([[cam.bic(whole, graph) for graph in graphs]]),
            provenance=self._words(data, cam.pruned(whole, order, knowledge, self.cutoff)),
        )

    def _most(self, d: int) -> int:
        """Parents that are considered for a variable."""
        usual = FEW_CANDIDATES if d > MANY else d - 1
        return max(1, min(self.max_candidates or usual, d - 1))

    def _basis_size(self, data: Dataset) -> int:
        """Functions per variable that the rows can pay for."""
        counted = data.observed.sum(axis=0)
        fewest = int(counted[counted > 0].min(initial=data.num_rows))
        affordable = fewest // (ROWS_PER_COEFFICIENT * self._most(data.num_variables))
        return int(np.clip(affordable, 2, self.num_basis))

    def _words(self, data: Dataset, graph: Int8[np.ndarray, "d d"]) -> PlainData:
        edges = [[data.names[i], data.names[j]] for i, j in np.argwhere(graph)]
        size = self._basis_size(data)
        return {
            "model": f"sums of smooth functions of single parents (splines of {size} functions), "
            "Gaussian noise",
            "prior": f"none: parents whose functions differ from zero at p < {self.cutoff:g}",
            "temperature": 1.0,
            "independent": True,
            "estimate": edges,  # from all rows: the graph that CAM itself returns
            "notes": [
                "a bootstrap, not a Bayesian posterior: how often an edge is found, with orders "
                "from samples of the rows and tests on all of them; log_joint is a BIC"
            ],
        }


def _functions(
    stats: AdditiveStats, basis: SplineBasis, graph: Int8[np.ndarray, "d d"], x: Array
) -> dict[str, np.ndarray]:
    """Splines on the edges of one graph, in engine units, and the scale of the noise."""
    d, num_knots = basis.knots.shape
    spread = np.maximum(np.asarray(x).std(axis=0), np.finfo(float).tiny)
    bends = np.stack([curvature_matrix(knots) for knots in basis.knots])
    widest = max(1, int(graph.sum(axis=0).max(initial=1)))
    members = np.zeros((d, widest), dtype=np.int32)
    values: Float[np.ndarray, "d m k"] = np.zeros((d, widest, num_knots))
    curvatures = np.zeros_like(values)
    bias, log_scale = np.zeros(d), np.zeros(d)
    for node in range(d):
        parents = np.flatnonzero(graph[:, node])
        fit, mean = stats.fit(node, parents), stats.mean(node)
        # Features of the node itself are in units of its deviation.
        own = spread[node] * np.einsum("pkq,pq->pk", basis.at_knots[parents], fit.coefficients)
        members[node, : len(parents)] = parents
        values[node, : len(parents)] = own
        curvatures[node, : len(parents)] = np.einsum("pkl,pl->pk", bends[parents], own)
        explained = (fit.coefficients * mean[parents]).sum()
        bias[node] = spread[node] * (mean[node, 0] - explained)
        log_scale[node] = np.log(spread[node]) + 0.5 * np.log(_positive(fit.variance))
    parts = {"members": members, "values": values, "curvatures": curvatures, "bias": bias}
    return parts | {"log_scale": log_scale}


def _positive(variance: float) -> float:
    """A variance whose logarithm is finite: a column computed from others has none left."""
    return max(variance, additive.PERFECT)


build = CAM
