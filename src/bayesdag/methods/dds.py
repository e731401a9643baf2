"""Differentiable DAG sampling: a variational posterior over graphs, functions point estimates."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from bayesdag.baselines.dds import DDSContext, DDSKernel, residual_scales
from bayesdag.baselines.likelihood import GradientContext, gradient_context, log_likelihood
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.posterior import Posterior, from_draws
from bayesdag.random import jax_key
from bayesdag.runs import loop
from bayesdag.runs.recording import recorder_of
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn
from bayesdag.types import Array, ExactDependence, Key, Keys, Monitor, Params, PlainData

MIN_ROWS = 10


@dataclass(frozen=True)
class DDS:
    """A baseline: differentiable DAG sampling, orders by Gumbel noise and edges by their logits.

    Graphs are drawn from a variational posterior (a random order, and edges that agree with
    it); the functions, masked networks, are one point estimate for all of them.

    Attributes:
        num_samples: draws of the fitted posterior.
        num_steps: steps of Adam.
        learning_rate: of Adam.
        mechanism: masked networks.
        sinkhorn: relaxation of a full matrix of scores of orders; None: Gumbel-Top-k.
        temperature: of the Gumbel-softmax edges, and of Gumbel-Top-k.
        edge_probability: prior of each edge.
        regularisation: weight of the divergence from that prior, per row.
        batch_size: rows per step.
        num_draws: Monte-Carlo graphs per step.
        held_out: share of the rows that are not learned from, but say when to stop.
        patience: passes through the rows without a lower loss on held-out rows until learning
            stops; what was learned by the best pass is used. None: all steps, all rows.

    References:
        Charpentier, Kibler, Günnemann: Differentiable DAG sampling. ICLR 2022.
    """

    PRESETS: ClassVar[dict[str, "DDS"]]
    supported_constraints = frozenset({"forbidden", "environments"})
    supports_interventions = True
    exact_dependence = ExactDependence.REFUSED

    num_samples: int = 100
    num_steps: int = 5000
    learning_rate: float = 0.002
    mechanism: MLP = MLP(width=16, depth=3)
    sinkhorn: Sinkhorn | None = None
    temperature: float = 1.0
    edge_probability: float = 0.01
    regularisation: float = 0.01
    batch_size: int = 64
    num_draws: int = 4
    held_out: float = 0.2
    patience: int | None = 50

    def __post_init__(self) -> None:
        for name in ("num_samples", "num_steps", "batch_size", "num_draws"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience is {self.patience}; it must be 1 or more, or None")
        if not 0 < self.held_out < 1:
            raise InputError(f"held_out is {self.held_out:g}; it must be between 0 and 1")
        if not isinstance(self.mechanism, MLP):
            raise InputError("dds learns masked networks: its mechanism is 'mlp'")
        if not 0 < self.edge_probability < 1:
            raise InputError(
                f"edge_probability is {self.edge_probability:g}; it must be between 0 and 1"
            )

    def min_rows(self, d: int) -> int:
        """Fewer rows than this say nothing."""
        del d
        return MIN_ROWS

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """Graphs drawn from the fitted posterior, with the functions that were learned."""
        key = jax_key(key)
        key_start, key_run, key_draws = jax.random.split(key, 3)
        context = gradient_context(data, knowledge, self.mechanism)
        split = self._split(jax.random.fold_in(key, 3), context)
        kernel = self._kernel(split.train.x.shape[0])
        schedule = loop.Schedule(self.num_steps - 1, 1, 1)
        state = kernel.start(key_start, data.num_variables)
        done = loop.run(key_run, kernel, state, split, schedule, recorder_of(monitor))
        learned = jax.tree.map(lambda leaf: leaf[0], done.draws)
        stopped = self.patience is not None and int(done.state.num_worse) >= self.patience
        keys = jnp.stack([jax.random.fold_in(key_draws, k) for k in range(self.num_samples)])
        found = _draws(kernel, keys, learned, context)
        drawn, log_scale, log_joint = (np.asarray(part) for part in found)
        graphs = drawn.astype(np.int8)
        num = self.num_samples
        functions = jax.tree.map(
            lambda leaf: np.broadcast_to(np.asarray(leaf), (1, num, *leaf.shape)),
            learned["functions"],
        )
        return from_draws(
            graphs[None],
            SCM(self.mechanism, Gaussian(), data.scaling),
            {"mechanism": functions, "noise": {"log_scale": log_scale[None]}},
            data,
            log_joint=log_joint[None],
            provenance=self._words(stopped),
        )

    def _split(self, key: Key, context: GradientContext) -> DDSContext:
        """Rows to learn from and rows held out; without patience all are learned from."""
        num_rows = context.x.shape[0]
        num = 0 if self.patience is None else max(1, round(self.held_out * num_rows))
        order = jax.random.permutation(key, num_rows)
        held, rest = order[:num], order[num:]
        train = context._replace(x=context.x[rest], observed=context.observed[rest])
        return DDSContext(train, context.x[held], context.observed[held])

    def _kernel(self, num_rows: int) -> DDSKernel:
        return DDSKernel(
            mechanism=self.mechanism,
            sinkhorn=self.sinkhorn,
            temperature=self.temperature,
            edge_probability=self.edge_probability,
            regularisation=self.regularisation,
            batch_size=self.batch_size,
            num_draws=self.num_draws,
            learning_rate=self.learning_rate,
            patience=self.patience,
            check_every=-(-num_rows // self.batch_size),
            num_check_draws=4 * self.num_draws,
        )

    def _words(self, stopped: bool) -> PlainData:
        order = "Gumbel-Top-k" if self.sinkhorn is None else "Gumbel-Sinkhorn"
        end = "stopped early, by held-out rows" if stopped else f"ran all of {self.num_steps} steps"
        return {
            "model": "neural functions (a point estimate), Gaussian noise of one scale in the "
            "objective; scales of the draws from their residuals",
            "prior": f"orders ({order}) without one, edges independent with probability "
            f"{self.edge_probability:g}, weighted by {self.regularisation:g} per row",
            "temperature": 1.0,
            "independent": True,
            "notes": [
                "baseline: a published method to compare with; graphs are uncertain, functions "
                "are not; log_joint is a log likelihood",
                f"learning {end}",
            ],
        }


@partial(jax.jit, static_argnums=0)
def _draws(
    kernel: DDSKernel, keys: Keys, learned: Params, context: GradientContext
) -> tuple[Array, Array, Array]:
    """Graphs, their noise scales and their log likelihoods.

    One after the other: all networks of all draws at once would take gigabytes.
    """
    functions = learned["functions"]

    def one(key: Key) -> tuple[Array, Array, Array]:
        graph = jnp.round(kernel.graph(key, learned, context))
        log_scale = residual_scales(kernel.mechanism, functions, graph, context)
        params = {"mechanism": functions, "noise": {"log_scale": log_scale}}
        return graph, log_scale, log_likelihood(kernel.mechanism, params, graph, context)

    return jax.lax.map(one, keys)


DDS.PRESETS = {
    "quick": DDS(num_steps=600, learning_rate=0.01, mechanism=MLP(width=8, depth=1)),
    "sinkhorn": DDS(sinkhorn=Sinkhorn(temperature=0.2)),
}

build = DDS
