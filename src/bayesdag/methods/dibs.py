"""DiBS: Stein variational gradient descent over graph embeddings and functions."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int8

from bayesdag.baselines.dibs import (
    MarginalContext,
    MarginalSteinKernel,
    SteinKernel,
    log_param_prior,
)
from bayesdag.baselines.embeddings import GraphEmbedding, limit_graphs
from bayesdag.baselines.evidence import evidence_tables
from bayesdag.baselines.likelihood import (
    GradientContext,
    gradient_context,
    log_likelihood,
    with_intercept,
)
from bayesdag.data import Dataset
from bayesdag.errors import DivergenceError, InputError
from bayesdag.graphs import is_acyclic
from bayesdag.knowledge import Constraints
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.parameter_priors import structure_energy
from bayesdag.model.priors._contexts import GivenContexts
from bayesdag.model.priors.erdos_renyi import ErdosRenyi
from bayesdag.model.priors.scale_free import ScaleFree
from bayesdag.model.scm import SCM
from bayesdag.posterior import Posterior, from_draws
from bayesdag.random import jax_key
from bayesdag.runs import loop
from bayesdag.runs.recording import recorder_of
from bayesdag.scores.bge import BGe
from bayesdag.types import (
    Array,
    Duration,
    ExactDependence,
    Key,
    Mechanism,
    Monitor,
    Params,
    PlainData,
    StructurePrior,
)

MIN_ROWS = 10


@dataclass(frozen=True)
class DiBS:
    """Particles of graph embeddings and functions, moved by Stein's gradient.

    Cycles become improbable as the run goes on, but are not excluded: particles that end in a
    graph with a cycle are counted, reported and left out. Noise variances are inferred, too,
    unless one is given.

    Attributes:
        mechanism: linear functions, or one small network per variable (`mlp`).
        prior: over graphs: `erdos_renyi` or `scale_free`.
        num_particles: draws; cost grows with their square.
        num_steps: steps of gradient descent.
        learning_rate: of RMSprop.
        alpha: how fast edge probabilities are driven to 0 or 1, per step.
        beta: how fast cycles lose probability, per step.
        temperature: of the Gumbel-softmax graphs.
        num_graphs: Monte-Carlo graphs per particle and step.
        num_acyclicity_graphs: likewise, to count cycles.
        batch_size: rows that networks see in a step; None: all. Linear functions see all.
        score: integrates functions out, so that graphs alone are moved (marginal DiBS); None:
            functions are moved with them. Gradients are then those of score functions.
        score_function: whether the gradient in graphs is estimated by score functions for
            joint DiBS, too, and not through Gumbel-softmax graphs.
        latent_size: length of an embedding; None: the number of variables.
        latent_bandwidth: of the kernel between embeddings.
        param_bandwidth: of the kernel between functions.
        noise_bandwidth: of the kernel between noise scales.
        noise_variance: of every variable, in engine units, where it is known, as in the paper of
            DiBS; None: inferred, one per variable.
        weighted: whether a particle counts by its joint density (DiBS+).

    References:
        Lorch, Rothfuss, Schölkopf, Krause: DiBS: differentiable Bayesian structure learning.
        NeurIPS 2021.
    """

    PRESETS: ClassVar[dict[str, "DiBS"]]
    supported_constraints = frozenset({"required", "forbidden", "beliefs", "environments"})
    supports_interventions = True
    exact_dependence = ExactDependence.REFUSED

    mechanism: Mechanism = Linear(intercept=False)
    prior: StructurePrior = ErdosRenyi()
    num_particles: int = 20
    num_steps: int = 3000
    learning_rate: float = 0.005
    alpha: float = 0.05
    beta: float = 1.0
    temperature: float = 1.0
    num_graphs: int = 128
    num_acyclicity_graphs: int = 32
    batch_size: int | None = None
    score: BGe | None = None
    score_function: bool = False
    latent_size: int | None = None
    latent_bandwidth: float = 5.0
    param_bandwidth: float = 500.0
    noise_bandwidth: float = 1.0
    noise_variance: float | None = None
    weighted: bool = False

    def __post_init__(self) -> None:
        for name in ("num_particles", "num_steps", "num_graphs", "num_acyclicity_graphs"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.batch_size is not None and self.batch_size < 1:
            raise InputError(f"batch_size is {self.batch_size}; it must be 1 or more, or None")
        if self.noise_variance is not None and not self.noise_variance > 0:
            raise InputError(f"noise_variance is {self.noise_variance:g}; it must be above 0")
        if self.noise_variance is not None and self.score is not None:
            raise InputError("dibs with a score integrates the noise out; leave noise_variance out")
        if self.score is not None and not isinstance(self.score, BGe):
            raise InputError("dibs integrates functions out by the score 'bge' alone; choose it")
        if self.score is not None and not isinstance(self.mechanism, Linear):
            raise InputError("dibs with a score has linear functions; leave `mechanism` as it is")
        if not isinstance(self.mechanism, Linear | MLP):
            raise InputError(
                "dibs moves graphs by gradients in their entries, which only the mechanisms "
                "'linear' and 'mlp' have; choose one of them"
            )

    def min_rows(self, d: int) -> int:
        """Fewer rows than this say nothing."""
        del d
        return MIN_ROWS

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """In proportion to steps, particles, graphs, and the cost of one likelihood."""
        linear = isinstance(self.mechanism, Linear)
        num_rows = min(num_rows, self.batch_size or num_rows)
        one = 3.3e-9 * num_variables**3 if linear else 4.7e-9 * num_rows * num_variables**2
        seconds = one * self.num_steps * self.num_particles * self.num_graphs
        return Duration(seconds, ("fewer Monte-Carlo graphs (num_graphs)", "fewer num_steps"))

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """The particles that ended in a DAG."""
        key = jax_key(key)
        key_start, key_run = jax.random.split(key)
        key_functions = jax.random.fold_in(key, 2)
        prior = GivenContexts(self.prior, knowledge.num_contexts)
        embedding = self._embedding(prior)
        known = gradient_context(data, knowledge, self._inner)
        if self.score is None:
            kernel, context = self._kernel(embedding), known
        else:
            tables = evidence_tables(self.score, self.score.prepare(data))
            kernel, context = self._marginal_kernel(embedding), MarginalContext(known, tables)
        state = kernel.start(key_start, data.num_variables)
        schedule = loop.Schedule(self.num_steps - 1, 1, 1)
        done = loop.run(key_run, kernel, state, context, schedule, recorder_of(monitor))
        ended = jax.tree.map(lambda leaf: np.asarray(leaf[0]), done.draws)
        graphs = np.asarray(limit_graphs(jnp.asarray(ended["latent"]), known)).astype(np.int8)
        kept = np.flatnonzero(is_acyclic(graphs))
        if not len(kept):
            raise DivergenceError(
                f"all of the {self.num_particles} particles of dibs ended in graphs with "
                "cycles; use more steps (num_steps) or a larger beta"
            )
        graphs = graphs[kept]
        if self.score is None:
            params = jax.tree.map(lambda leaf: leaf[kept], ended["params"])
            found = self._functions(graphs, params, data, prior, known)
        else:
            found = _integrated(key_functions, self.score, graphs, data, prior, known)
        model, params, log_joint = found
        weights = np.exp(log_joint - log_joint.max())[None] if self.weighted else None
        return from_draws(
            graphs[None],
            model,
            jax.tree.map(lambda leaf: leaf[None], params),
            data,
            log_joint=log_joint[None],
            weights=weights,
            provenance=self._words(len(kept)),
        )

    def _functions(
        self,
        graphs: Int8[np.ndarray, "s d d"],
        params: Params,
        data: Dataset,
        prior: StructurePrior,
        context: GradientContext,
    ) -> tuple[SCM, Params, Float[np.ndarray, " s"]]:
        """Model, functions and log joint density of particles that carry functions."""
        given = graphs.astype(np.float32)
        log_joint = _log_joint(self._inner, prior, given, params, context)
        model = SCM(self._stored, Gaussian(), data.scaling)
        stored = self._stored_params(params, graphs, data)
        return model, stored, np.asarray(log_joint, dtype=float)

    def _embedding(self, prior: StructurePrior) -> GraphEmbedding:
        return GraphEmbedding(
            prior=prior,
            size=self.latent_size,
            alpha=self.alpha,
            beta=self.beta,
            temperature=self.temperature,
            num_acyclicity_graphs=self.num_acyclicity_graphs,
        )

    def _kernel(self, embedding: GraphEmbedding) -> SteinKernel:
        return SteinKernel(
            mechanism=self._inner,
            embedding=embedding,
            num_particles=self.num_particles,
            num_graphs=self.num_graphs,
            batch_size=self.batch_size,
            score_function=self.score_function,
            latent_bandwidth=self.latent_bandwidth,
            param_bandwidth=self.param_bandwidth,
            noise_bandwidth=self.noise_bandwidth,
            learning_rate=self.learning_rate,
            noise_variance=self.noise_variance,
        )

    def _marginal_kernel(self, embedding: GraphEmbedding) -> MarginalSteinKernel:
        return MarginalSteinKernel(
            embedding=embedding,
            num_particles=self.num_particles,
            num_graphs=self.num_graphs,
            latent_bandwidth=self.latent_bandwidth,
            learning_rate=self.learning_rate,
        )

    @property
    def _inner(self) -> Mechanism:
        """Linear functions move without an intercept: the best one is known at any time."""
        return Linear(intercept=False) if isinstance(self.mechanism, Linear) else self.mechanism

    @property
    def _stored(self) -> Mechanism:
        return Linear() if isinstance(self.mechanism, Linear) else self.mechanism

    def _stored_params(
        self, params: Params, graphs: Int8[np.ndarray, "s d d"], data: Dataset
    ) -> Params:
        if not isinstance(self.mechanism, Linear):
            return params
        weights = params["mechanism"]["weights"]
        return {"mechanism": with_intercept(weights, graphs, data), "noise": params["noise"]}

    @property
    def _model_in_words(self) -> str:
        if self.score is not None:
            return f"linear functions with Gaussian noise, integrated out: {self.score.describe()}"
        functions = "linear" if isinstance(self.mechanism, Linear) else "neural"
        known = self.noise_variance
        noise = "σ² inverse gamma" if known is None else f"σ² = {known:g}"
        return f"{functions} functions with standard normal weights, Gaussian noise, {noise}"

    def _words(self, num_kept: int) -> PlainData:
        lost = self.num_particles - num_kept
        notes = [f"{lost} of {self.num_particles} particles ended in graphs with cycles, left out"]
        if self.weighted:
            notes.append("particles count by their joint density (DiBS+)")
        return {
            "model": self._model_in_words,
            "prior": self.prior.describe(),
            "temperature": 1.0,
            "num_cyclic": lost,
            "notes": notes,
        }


@partial(jax.jit, static_argnums=(0, 1))
def _log_joint(
    mechanism: Mechanism,
    prior: StructurePrior,
    graphs: Float[Array, "s d d"],
    params: Params,
    context: GradientContext,
) -> Float[Array, " s"]:
    """log p(G, Θ, σ, D) of each particle, up to a constant."""

    def one(graph: Array, params: Params) -> Array:
        likelihood = log_likelihood(mechanism, params, graph, context)
        return likelihood + log_param_prior(mechanism, params, graph)

    return jax.vmap(one)(graphs, params) + _log_graph_prior(prior, graphs, context)


def _integrated(
    key: Key,
    score: BGe,
    graphs: Int8[np.ndarray, "s d d"],
    data: Dataset,
    prior: StructurePrior,
    context: GradientContext,
) -> tuple[SCM, Params, Float[np.ndarray, " s"]]:
    """Model, functions drawn given each graph, and the log posterior of graphs by evidence."""
    stats = score.prepare(data)
    parents = np.swapaxes(graphs != 0, 1, 2)
    local = [score.log_evidence(stats, j, parents[:, j]) for j in range(data.num_variables)]
    log_prior = _log_graph_prior(prior, graphs.astype(np.float32), context)
    log_joint = np.sum(local, axis=0) + np.asarray(log_prior, dtype=float)
    return score.scm(data), score.draw(key, stats, graphs), log_joint


@partial(jax.jit, static_argnums=0)
def _log_graph_prior(
    prior: StructurePrior, graphs: Float[Array, "s d d"], context: GradientContext
) -> Float[Array, " s"]:
    def one(graph: Array) -> Array:
        return (context.log_odds * graph).sum() - structure_energy(graph, prior)

    return jax.vmap(one)(graphs)


def _published(alpha: float, latent: float, theta: float, sigma: float, **more: Any) -> DiBS:
    """What the comparison of the paper used: 20 particles, 10000 steps, rate .01."""
    return DiBS(
        num_steps=10_000,
        learning_rate=0.01,
        temperature=0.1,
        alpha=alpha,
        latent_bandwidth=latent,
        param_bandwidth=theta,
        noise_bandwidth=sigma,
        **more,
    )


_NEURAL: dict[str, Any] = {"mechanism": MLP()}
_SCALE_FREE: dict[str, Any] = {"prior": ScaleFree()}
DiBS.PRESETS = {
    "quick": DiBS(num_steps=300, num_graphs=32, num_acyclicity_graphs=8, learning_rate=0.02),
    "marginal": DiBS(score=BGe(), latent_bandwidth=20.0, alpha=0.2),
    "mlp": DiBS(num_graphs=8, num_acyclicity_graphs=8, num_steps=2000, **_NEURAL),
    "paper-linear-er5": _published(0.02, 5.0, 1000.0, 1.0),
    "paper-linear-sf5": _published(0.02, 15.0, 500.0, 1.0, **_SCALE_FREE),
    "paper-nonlinear-er20": _published(0.02, 5.0, 1500.0, 10.0, **_NEURAL),
    "paper-nonlinear-sf20": _published(0.2, 5.0, 1500.0, 10.0, **_NEURAL, **_SCALE_FREE),
    "paper-nonlinear-er30": _published(0.2, 5.0, 500.0, 1.0, **_NEURAL),
    "paper-nonlinear-sf30": _published(0.2, 5.0, 1000.0, 1.0, **_NEURAL, **_SCALE_FREE),
    "paper-nonlinear-er50": _published(0.2, 5.0, 500.0, 10.0, **_NEURAL),
    "paper-nonlinear-sf50": _published(0.2, 5.0, 1500.0, 1.0, **_NEURAL, **_SCALE_FREE),
    "paper-syntren": _published(0.2, 5.0, 500.0, 10.0, **_NEURAL),
    "paper-sachs": _published(0.2, 5.0, 500.0, 10.0, **_NEURAL),
}

build = DiBS
