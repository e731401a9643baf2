"""BGe: the exact evidence of linear Gaussian families under one Wishart prior.

Each family's parameters are integrated out in closed form, and Markov equivalent graphs
get the same score: no observation tells them apart, and this prior does not pretend to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.special import gammaln

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.random import generator
from bayesdag.scores import _sufficient_statistics
from bayesdag.types import Key, Params, ParentSets

MIN_UNEXPLAINED = 1e-13  # share of a variance; what is left below it is rounding


class BGeStats(NamedTuple):
    """The normal-Wishart posterior; nodes that were observed in the same rows share one.

    Attributes:
        group: entry of each node.
        num_rows: N, rows in which the node was observed.
        mean: posterior mean of all variables.
        scale: posterior scale matrix R.
        alpha_w: degrees of freedom of the prior.
        prior_scale: t; the prior scale matrix is t·I.
    """

    group: Int[np.ndarray, " d"]
    num_rows: Int[np.ndarray, " g"]
    mean: Float[np.ndarray, "g d"]
    scale: Float[np.ndarray, "g d d"]
    alpha_w: float
    prior_scale: float


@dataclass(frozen=True)
class BGe:
    """Normal-Wishart evidence in engine units, with prior mean 0 and prior scale t·I.

    t = alpha_mu (alpha_w - d - 1) / (alpha_mu + 1), as is usual. Rows where a node was set
    by an experimenter do not count for that node.

    Attributes:
        alpha_mu: weight of the prior mean, in rows; it sets the prior scale of the effects, too.
            Of single values 1 is never far from the best, for weak and strong effects, with
            standardised columns and in raw units (`experiments/results/alpha_mu.md`).
        alpha_w: degrees of freedom of the Wishart prior; None: d + 2.

    References:
        Geiger & Heckerman (2002), Parameter priors for directed acyclic graphical models,
        Annals of Statistics; in the form of Kuipers, Moffa & Heckerman (2014), Addendum on
        the scoring of Gaussian directed acyclic graphical models, Annals of Statistics.
    """

    alpha_mu: float = 1.0
    alpha_w: float | None = None

    def describe(self) -> str:
        """The score and its prior, in words."""
        alpha_w = "d + 2" if self.alpha_w is None else f"{self.alpha_w:g}"
        return f"BGe, alpha_mu = {self.alpha_mu:g}, alpha_w = {alpha_w}"

    def prepare(self, data: Dataset) -> BGeStats:
        """The joint posterior of mean and precision, in engine units."""
        return self.of_rows(data.scaled, data.observed)

    def of_rows(
        self, values: Float[np.ndarray, "n d"], observed: Bool[np.ndarray, "n d"]
    ) -> BGeStats:
        """The same of a table of columns, and where nature chose their values."""
        d = values.shape[1]
        alpha_w = d + 2.0 if self.alpha_w is None else self.alpha_w
        if not (self.alpha_mu > 0 and alpha_w > d + 1):
            raise InputError(
                f"BGe has alpha_mu = {self.alpha_mu:g} and alpha_w = {alpha_w:g}; with {d} "
                f"variables alpha_mu must be above 0 and alpha_w above {d + 1}"
            )
        prior_scale = self.alpha_mu * (alpha_w - d - 1) / (self.alpha_mu + 1)
        rows = _sufficient_statistics.rows_of(values, observed)
        share = rows.num_rows / (self.alpha_mu + rows.num_rows)
        shift = rows.mean[:, :, None] * rows.mean[:, None, :]  # the prior mean is 0
        scale = prior_scale * np.eye(d) + rows.scatter
        scale = scale + (self.alpha_mu * share)[:, None, None] * shift
        mean = share[:, None] * rows.mean
        return BGeStats(rows.group, rows.num_rows, mean, scale, alpha_w, prior_scale)

    def log_evidence(
        self, stats: BGeStats, node: int, parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """log p(x_node | x_parents), for m parent sets."""
        return self.log_evidence_of_each(stats, np.full(len(parents), node), parents)

    def log_evidence_of_each(
        self, stats: BGeStats, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """The same for m families of several nodes."""
        result = np.empty(len(parents))
        for which, members in _sufficient_statistics.by_size(parents):
            num_parents, entry = members.shape[1], stats.group[nodes[which]]
            root = _family_root(stats, nodes[which], members)
            # log of |R_SS|^½ and of R_{i|S}^½, the last pivot.
            log_pivots = np.log(np.diagonal(root, axis1=1, axis2=2))
            groups, own = np.unique(entry, return_inverse=True)
            constants = [self._constant(stats, g, num_parents) for g in groups.tolist()]
            result[which] = np.array(constants)[own.reshape(-1)]
            shape = _shape(stats, entry, num_parents)
            result[which] -= log_pivots[:, :-1].sum(axis=1) + 2 * shape * log_pivots[:, -1]
        return result

    def log_evidence_of_subsets(
        self,
        stats: BGeStats,
        node: int,
        fixed: Bool[np.ndarray, "r d"],
        candidates: Sequence[int],
    ) -> Float[np.ndarray, "r q"]:
        """The same for fixed parents with every subset of q candidates; bit k is the k-th.

        Candidates are swept out of R one after the other, for all subsets of those before at
        once: each set costs a few numbers instead of a factorisation.
        """
        result = np.empty((len(fixed), 1 << len(candidates)))
        scale, entry = stats.scale[stats.group[node]], int(stats.group[node])
        sizes = np.bitwise_count(np.arange(result.shape[1]))
        for row, chosen in enumerate(fixed):
            base = np.flatnonzero(chosen)
            log_root, left = _swept(scale, base, [*candidates, node])
            num = len(base) + np.arange(len(candidates) + 1)
            constant = np.array([self._constant(stats, entry, int(p)) for p in num])
            shape = np.array([_shape(stats, entry, int(p)) for p in num])
            result[row] = constant[sizes] - log_root - shape[sizes] * np.log(left)
        return result

    def log_evidence_of_additions(
        self, stats: BGeStats, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """log p(x_node | x_parents, x_j) for every further parent j, at the price of one set.

        Entries of the node itself and of variables that are parents already mean nothing.
        """
        result = np.empty(parents.shape)
        for which, members in _sufficient_statistics.by_size(
            parents, extra=4 * parents.shape[1] ** 2
        ):
            node, entry = nodes[which], stats.group[nodes[which]]
            across = stats.scale[entry[:, None], members]
            root = np.linalg.cholesky(np.take_along_axis(across, members[:, None], axis=2))
            whitened = np.linalg.solve(root, across)
            # What the parents leave of each variable, and of its product with the node.
            tiny = np.finfo(float).eps
            left = np.diagonal(stats.scale, axis1=1, axis2=2)[entry] - (whitened**2).sum(axis=1)
            left = np.maximum(left, tiny)
            own = np.take_along_axis(whitened, node[:, None, None], axis=2)
            shared = stats.scale[entry, node] - (own * whitened).sum(axis=1)
            of_node = np.take_along_axis(left, node[:, None], axis=1)
            rest = np.maximum(of_node - shared**2 / left, tiny)
            size = members.shape[1] + 1
            constants = [self._constant(stats, g, size) for g in range(len(stats.num_rows))]
            log_root = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
            result[which] = (np.array(constants)[entry] - log_root)[:, None] - 0.5 * np.log(left)
            result[which] -= np.asarray(_shape(stats, entry, size))[:, None] * np.log(rest)
        return result

    def by_family_size(
        self, stats: BGeStats
    ) -> tuple[Float[np.ndarray, "g d"], Float[np.ndarray, "g d"]]:
        """What the log evidence takes from the number of parents: a constant, and an exponent.

        The exponent is that of the square root of R_{i|S}, what parents leave unexplained.
        """
        groups, sizes = range(len(stats.num_rows)), range(stats.mean.shape[1])
        constants = [[self._constant(stats, g, p) for p in sizes] for g in groups]
        exponents = [[2 * float(_shape(stats, g, p)) for p in sizes] for g in groups]
        return np.array(constants), np.array(exponents)

    def scm(self, data: Dataset) -> SCM:
        """Linear mechanisms with Gaussian noise."""
        return SCM(Linear(), Gaussian(), data.scaling)

    def draw(self, key: Key, stats: BGeStats, graphs: Shaped[np.ndarray, "s d d"]) -> Params:
        """Exact posterior draws of weights, intercepts and noise scales given each graph.

        With R the posterior scale matrix, σ² of node i with parents S is inverse gamma with
        shape (alpha_w + N - d + |S| + 1)/2 and scale R_{i|S}/2; its weights are
        N(R_SS⁻¹ R_Si, σ² R_SS⁻¹), and its intercept varies by σ²/(alpha_mu + N) around the
        value that agrees with the posterior means.
        """
        rng = generator(key)
        nodes, parents = _sufficient_statistics.of_graphs(graphs)
        weights = np.zeros(graphs.shape)
        bias, log_scale = np.empty(len(nodes)), np.empty(len(nodes))
        for which, members in _sufficient_statistics.by_size(parents):
            node, entry = nodes[which], stats.group[nodes[which]]
            root = _family_root(stats, node, members)
            shape = _shape(stats, entry, members.shape[1])
            sigma = root[:, -1, -1] / np.sqrt(2 * rng.gamma(shape))
            noise = sigma[:, None] * rng.standard_normal(members.shape)
            slopes = _unwhiten(root, root[:, -1, :-1] + noise)
            weights[_sufficient_statistics.edges_of(graphs.shape, which, members)] = slopes
            spread = sigma / np.sqrt(self.alpha_mu + stats.num_rows[entry])
            explained = (slopes * stats.mean[entry[:, None], members]).sum(axis=1)
            bias[which] = rng.normal(stats.mean[entry, node] - explained, spread)
            log_scale[which] = np.log(sigma)
        return _sufficient_statistics.linear_params(weights, bias, log_scale)

    def _constant(self, stats: BGeStats, entry: int, num_parents: int) -> float:
        """The part of the log evidence that depends on the parents' number alone."""
        num_rows = stats.num_rows[entry]
        freedom = stats.alpha_w - stats.mean.shape[1] + num_parents + 1
        gammas = gammaln((freedom + num_rows) / 2) - gammaln(freedom / 2)
        weight = 0.5 * np.log(self.alpha_mu / (self.alpha_mu + num_rows))
        prior = 0.5 * (freedom + num_parents) * np.log(stats.prior_scale)
        return float(gammas + weight + prior - 0.5 * num_rows * np.log(np.pi))


def _shape(stats: BGeStats, entry, num_parents: int):
    """Shape of the inverse gamma posterior of σ²."""
    d = stats.mean.shape[1]
    return 0.5 * (stats.alpha_w + stats.num_rows[entry] - d + num_parents + 1)


def _family_root(
    stats: BGeStats, node: Int[np.ndarray, " b"], members: Int[np.ndarray, "b p"]
) -> Float[np.ndarray, "b q q"]:
    """Cholesky factors of R over the parents and, last, the node itself.

    The last row is then the whitened regression of the node on its parents, and the last
    pivot the square root of what they leave unexplained: no difference of determinants.
    """
    family = np.concatenate([members, node[:, None]], axis=1)
    entry = stats.group[node][:, None, None]
    scale = stats.scale[entry, family[:, :, None], family[:, None, :]]
    try:
        root = np.linalg.cholesky(scale)
    except np.linalg.LinAlgError:
        raise _redundant() from None
    unexplained = np.diagonal(root, axis1=1, axis2=2) ** 2
    if np.any(unexplained < MIN_UNEXPLAINED * np.diagonal(scale, axis1=1, axis2=2)):
        raise _redundant()
    return root


def _swept(
    scale: Float[np.ndarray, "d d"], base: Int[np.ndarray, " b"], members: list[int]
) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """Log pivots of base and subset, summed and halved, and what they leave of the last member.

    Args:
        members: of which all subsets are taken, and the one to explain.
    """
    order = [*base.tolist(), *members]
    least = MIN_UNEXPLAINED * np.diagonal(scale)[order]
    rest, log_root = scale[np.ix_(order, order)][None], np.zeros(1)
    for number in range(len(order) - 1):
        pivot = rest[:, 0, 0]
        if np.any(pivot < least[number]):
            raise _redundant()
        across, others = rest[:, 0, 1:], rest[:, 1:, 1:]
        taken = others - across[:, :, None] * (across / pivot[:, None])[:, None, :]
        larger = log_root + 0.5 * np.log(pivot)
        whole = number < len(base)  # a fixed parent is in every set
        rest = taken if whole else np.concatenate([others, taken])
        log_root = larger if whole else np.concatenate([log_root, larger])
    left = rest[:, 0, 0]
    if np.any(left < least[-1]):
        raise _redundant()
    return log_root, left


def _redundant() -> InputError:
    return InputError(
        "some columns are linear combinations of others to within rounding, so that BGe "
        "cannot be computed; drop the redundant columns, or standardise the data"
    )


def _unwhiten(
    root: Float[np.ndarray, "b q q"], whitened: Float[np.ndarray, "b p"]
) -> Float[np.ndarray, "b p"]:
    """Slopes from coordinates in which their posterior covariance is σ²·I."""
    across = np.swapaxes(root[:, :-1, :-1], 1, 2)
    return np.linalg.solve(across, whitened[:, :, None])[:, :, 0]


build = BGe
