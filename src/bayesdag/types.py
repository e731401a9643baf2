"""Array aliases and the plug-in protocols: the vocabulary of the package.

Conventions, everywhere: `graph[i, j] = 1` means i -> j. Dimensions: `n` rows, `d` variables,
`b` batch, `c` chains, `s` draws. `energy` is U = -log joint and `grad` its gradient.
"""

import sys
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import jaxtyping
import numpy as np
from jaxtyping import Bool, Float, Int, Int8, Shaped

if TYPE_CHECKING or "jax" in sys.modules:
    from jax import Array as JaxArray
    from jaxtyping import PRNGKeyArray as Key
else:
    # Nobody has loaded JAX, and a command that prints a table must not wait for it.
    JaxArray = Key = Any

Keys = jaxtyping.Key[JaxArray, " k"]  # one for each of several data sets
Array = JaxArray | np.ndarray
Pytree = Any  # of arrays: states, contexts, carries, results
Params = Pytree  # unknowns are never hidden in objects
PlainData = dict[str, Any]  # what JSON can hold: provenance, settings, summaries
Facts = Mapping[str, Any]  # plain data that is read only

Graph = Shaped[Array, "d d"]
Graphs = Shaped[Array, "*batch d d"]
Draws = Int8[np.ndarray, "chain draw d d"]
Weights = Float[np.ndarray, "chain draw"]
Potentials = Float[Array, " d"]
Mask = Shaped[Array, "d d"]
Rows = Float[Array, "n d"]
ParentSets = Bool[np.ndarray, "m d"]
# Of a structure prior: log weights of its components, and their penalties by in-degree.
Components = tuple[Float[np.ndarray, " c"], Float[np.ndarray, "c d"]]


class ExactDependence(Enum):
    """Treatment of columns that determine one another.

    Results are averaged over which column is computed from which; or ignored, by what claims
    nothing about causes; or such data are refused.
    """

    AVERAGED = "averaged"
    IGNORED = "ignored"
    REFUSED = "refused"


# What a score or a method takes that says nothing else: its attribute `takes_kinds` names the
# kinds of columns (`data.kinds`) whose values it does not mistake for measurements.
MEASUREMENTS = frozenset({"continuous"})


def kinds_taken(plugin: Any) -> frozenset[str]:
    """Kinds of columns that a score or a method has a model for."""
    return getattr(plugin, "takes_kinds", MEASUREMENTS)


@runtime_checkable
class Relaxation(Protocol):
    """Supplies the gradient of an order: `order[i, j] ≈ step(p_i - p_j)`."""

    def init(self, d: int) -> Pytree:
        """Carry handed from one call to the next (Sinkhorn keeps its duals here)."""
        ...

    def __call__(self, key: Key, potentials: Potentials, carry: Pytree) -> tuple[Graph, Pytree]:
        """The hard order with the gradient of a soft one, and the new carry."""
        ...

    def relaxed(self, potentials: Potentials, carry: Pytree) -> tuple[Graph, Pytree]:
        """The soft order itself, and the new carry."""
        ...

    def permutation(self, potentials: Potentials, carry: Pytree) -> tuple[Graph, Pytree] | None:
        """The hard rank matrix with the gradient of a soft one; None where there is none."""
        ...


@runtime_checkable
class Mechanism(Protocol):
    """The mean of every variable given its parents, in the units the engine sees."""

    def init(self, key: Key, d: int) -> Params:
        """Parameters at the start of a chain."""
        ...

    def __call__(self, params: Params, x: Rows, graph: Graph) -> Rows:
        """Means of all variables at once; column j depends on x only through graph[:, j]."""
        ...

    def node(self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array) -> Array:
        """Mean of variable `i` alone, so that ancestral sampling costs one pass, not d."""
        ...


@runtime_checkable
class Heteroscedastic(Protocol):
    """A mechanism whose parents decide the scale of the noise, too."""

    def node_scale(self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array) -> Array:
        """Factor of the noise of variable `i` in every row."""
        ...


@runtime_checkable
class PostNonlinear(Protocol):
    """A mechanism whose targets may be monotone functions of a sum: h(x) = mean + noise."""

    def warp(self, params: Params, x: Array, i: Array) -> Array:
        """h of variable `i`, value by value."""
        ...

    def unwarp(self, params: Params, z: Array, i: Array) -> Array:
        """Inverse of `warp`."""
        ...

    def log_slope(self, params: Params, x: Array, i: Array) -> Array:
        """log h' of variable `i`, value by value."""
        ...


@runtime_checkable
class DiscreteNodes(Protocol):
    """A mechanism some of whose variables are levels or counts: they follow from probabilities.

    Such a variable is the quantile at Φ(noise) of its distribution given the parents, with
    standard normal noise.
    """

    def is_continuous(self, i: Array) -> Array:
        """Whether variable `i` is its mean plus noise, as of any other mechanism."""
        ...

    def is_unordered(self, i: Array) -> Array:
        """Whether variable `i` has levels without an order."""
        ...

    def log_mass(self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array) -> Array:
        """Log probability of the value of variable `i` in every row."""
        ...

    def below(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> tuple[Array, Array]:
        """Probability of a smaller value than that of variable `i`, and of that value itself."""
        ...

    def quantile(
        self,
        params: Params,
        x: Rows,
        parents: Shaped[Array, " d"],
        i: Array,
        probability: Array,
    ) -> Array:
        """Value of variable `i` at this probability, in every row."""
        ...

    def level_probabilities(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Array:
        """Probability of every level of variable `i`, where it has levels."""
        ...


@runtime_checkable
class Noise(Protocol):
    """Density of the residuals, one independent component per variable."""

    def init(self, key: Key, d: int) -> Params:
        """Parameters at the start of a chain."""
        ...

    def log_prob(self, params: Params, residual: Rows) -> Rows:
        """Log density of each residual."""
        ...

    def sample(self, params: Params, key: Key, shape: tuple[int, ...]) -> Rows:
        """Residuals of shape (n, d)."""
        ...


@runtime_checkable
class Sampler(Protocol):
    """Moves a position along the gradient of the energy, with noise.

    Its state is a NamedTuple with a field `position`.
    """

    @property
    def noise_scale(self) -> float:
        """Square root of the temperature of the target."""
        ...

    def init(self, position: Params) -> Pytree:
        """State that starts at `position`."""
        ...

    def step(
        self, key: Key, state: Pytree, grad: Params, grad_variance: Params | None = None
    ) -> Pytree:
        """State after one update.

        Args:
            grad: gradient of the energy at `state.position`.
            grad_variance: variance of `grad` due to the choice of rows; None: no such noise.
        """
        ...

    def clipped_share(self, state: Pytree) -> Array:
        """Fraction of coordinates where mini-batches alone are noisier than the target."""
        ...


@runtime_checkable
class Edges(Protocol):
    """q(W|p): a distribution over edge masks given the potentials."""

    def init(self, key: Key, d: int) -> Params:
        """Parameters φ."""
        ...

    def sample(
        self, params: Params, key: Key, potentials: Potentials, permutation: Graph | None = None
    ) -> Mask:
        """A mask, hard forward and soft backward.

        `permutation` is the rank matrix, where its gradient is to be followed.
        """
        ...

    def log_prob(self, params: Params, potentials: Potentials, mask: Mask) -> Array:
        """log q(mask | potentials)."""
        ...

    def entropy(self, params: Params, potentials: Potentials) -> Array:
        """Entropy of q(W | potentials)."""
        ...


@runtime_checkable
class StructurePrior(Protocol):
    """A mixture of local in-degree penalties; a frozen dataclass of its settings."""

    def components(self, d: int, order_modular: bool = True, num_contexts: int = 0) -> Components:
        """Log weights, less each component's log normaliser, and penalties by in-degree.

        So Σ_c exp(log_weights[c] + Σ_i penalty[c, in-degree of i]) sums to one, over all
        pairs of order and DAG or over all DAGs. Of the d nodes `num_contexts` have no parents
        and precede all others.
        """
        ...

    def describe(self) -> str:
        """The prior in words."""
        ...


@runtime_checkable
class Score(Protocol):
    """A local log marginal likelihood, and the functions behind it."""

    def prepare(self, data: Any) -> Pytree:
        """Sufficient statistics of a Dataset."""
        ...

    def log_evidence(
        self, stats: Pytree, node: int, parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """log p(x_node | x_parents) with the function integrated out, for m parent sets."""
        ...

    def scm(self, data: Any) -> Any:
        """The SCM whose parameters `draw` returns."""
        ...

    def draw(self, key: Key, stats: Pytree, graphs: Shaped[np.ndarray, "s d d"]) -> Params:
        """One draw of the parameters for each graph; every leaf has leading dimension s."""
        ...


@runtime_checkable
class ExpensiveScore(Protocol):
    """A score that trains: it remembers, works in batches, and says which parents to try first.

    Values may change when it trains a family again, so nobody else should remember them. The
    statistics it prepares hold what it has trained.
    """

    def prepare(self, data: Any, recorder: "Recorder | None" = None) -> Pytree:
        """Statistics of a Dataset; what is trained is recalled from the recorder's journal."""
        ...

    def log_evidence_of_families(
        self, stats: Pytree, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """Log evidence of node m with parents m: the more at once, the better."""
        ...

    def approximate_gain(
        self, stats: Pytree, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """Roughly what variable j adds to the log evidence of node b with parents b."""
        ...

    def surrogate(self, stats: Pytree) -> tuple[Any, Any]:
        """A score of the same rows that costs little, and its statistics: where to begin."""
        ...

    def queue_retraining(
        self, stats: Pytree, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> None:
        """Queue all sets with one parent less than these, to be trained again."""
        ...

    def retrain_queued(self, stats: Pytree) -> set[tuple[int, int]]:
        """Train what is queued; the families whose score has changed since the last time.

        A family is a node and its parents, as the bits of a number.
        """
        ...

    def power(self, stats: Pytree) -> float:
        """To which it raises the evidence, because it is not exact."""
        ...


@runtime_checkable
class NoiseAveraged(Protocol):
    """A score whose posterior is averaged over noise models."""

    def noise_hypotheses(self) -> tuple[Any, ...]:
        """The score under each assumption, with statistics in common; all count the same."""
        ...

    def describe_noise(self) -> str:
        """Noise assumption of this score, in words."""
        ...


@runtime_checkable
class WeighsFunctions(Protocol):
    """A score that averages over classes of functions, and can say how much each counts."""

    def function_weights(
        self, stats: Pytree, graphs: Shaped[np.ndarray, "s d d"]
    ) -> dict[str, Float[np.ndarray, " d"]]:
        """By class in words: its probability for every variable, averaged over graphs."""
        ...


@runtime_checkable
class Coarsened(Protocol):
    """A score whose evidence can be trusted less where the rows contradict its model."""

    def coarsened(self, misfit: float, repetition: float, num_rows: int) -> Any:
        """The score for data with this misfit, in nats per row and variable.

        Args:
            repetition: rows that say as much as one independent row.
            num_rows: number of the rows.
        """
        ...


@runtime_checkable
class Monitor(Protocol):
    """Watches a long run: shows progress, may stop it."""

    def resume(self, template: Pytree) -> Pytree | None:
        """State that an interrupted run left, in the structure of `template`, or None."""
        ...

    def chunk(self, step: int, total: int, state: Pytree, stats: dict[str, float]) -> None:
        """Called after each chunk of steps, with everything needed to go on from here."""
        ...


@runtime_checkable
class StatusReporter(Protocol):
    """A monitor that also wants to hear of work that is not counted in steps."""

    def report(self, words: str, done: int | None = None, total: int | None = None) -> None:
        """Report what is being done, and how much of it is done, where that can be counted."""
        ...


@runtime_checkable
class Announcer(Protocol):
    """A monitor that has a line of its own for what is said once."""

    def announce(self, words: str) -> None:
        """Say it at once."""
        ...


class Duration(NamedTuple):
    """Typical duration of a fit.

    Attributes:
        seconds: on two cores, or on one accelerator.
        faster: what would make it faster, in words.
        on_accelerator: whether an accelerator does the work.
    """

    seconds: float
    faster: tuple[str, ...]
    on_accelerator: bool = False


@runtime_checkable
class Timed(Protocol):
    """A method that knows how long it takes."""

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """Typical duration of a fit of so many rows and variables."""
        ...


@runtime_checkable
class Recorder(Protocol):
    """A monitor as methods see it: it also keeps results, so that none is computed twice.

    Names of results belong to a scope; `child` opens one inside. The name of a result must say
    what decides it (`runs.checkpoint.fingerprint`), so that a run with other inputs, as one that
    extends another, does not take it for its own.
    """

    def child(self, name: str) -> "Recorder":
        """The same recorder with a scope of its own: a noise model, a bag."""
        ...

    def recall(
        self, name: str, compute: Callable[[], Mapping[str, np.ndarray]]
    ) -> Mapping[str, np.ndarray]:
        """The result of this name, or what `compute` returns, which is then kept."""
        ...

    def records(self) -> dict[str, Mapping[str, np.ndarray]]:
        """Everything that is kept in this scope, for a task that is computed elsewhere."""
        ...

    def keep(self, records: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Keep what a task has computed elsewhere, under the names it has in this scope."""
        ...

    def unfinished(self, name: str) -> Mapping[str, np.ndarray] | None:
        """The last state that was kept on the way to the result of this name, or None."""
        ...

    def keep_unfinished(self, name: str, make: Callable[[], Mapping[str, np.ndarray]]) -> None:
        """Keep a state on the way to a result, if it is time; `make` is called only then."""
        ...

    def resume(self, template: Pytree) -> Pytree | None:
        """The last state of this scope's chains, in the structure of `template`, or None."""
        ...

    def chunk(self, step: int, total: int, state: Pytree, stats: dict[str, float]) -> None:
        """Called after each chunk of steps, with everything needed to go on from here."""
        ...

    def report(self, words: str) -> None:
        """Report what is being done, and how much of it is done."""
        ...


@runtime_checkable
class Method(Protocol):
    """Turns data and knowledge into a Posterior; a frozen dataclass of its settings.

    `supported_constraints` names the kinds of knowledge the method obeys by construction, out of
    "required", "forbidden", "beliefs" and "environments"; others are refused before it starts.
    `supports_interventions` says whether it drops the likelihood of cells that were set.
    """

    @property
    def supported_constraints(self) -> frozenset[str]:
        """Kinds of knowledge that the method obeys."""
        ...

    @property
    def supports_interventions(self) -> bool:
        """Whether cells that were set leave the likelihood."""
        ...

    @property
    def exact_dependence(self) -> ExactDependence:
        """Treatment of columns that determine one another."""
        ...

    def min_rows(self, d: int) -> int:
        """Fewest rows the method can work with."""
        ...

    def __call__(self, key: Key, data: Any, knowledge: Any, monitor: Monitor | None) -> Any:
        """The posterior; `knowledge` is bound to the data's columns (`Constraints`)."""
        ...


@runtime_checkable
class SamplingMethod(Method, Protocol):
    """A method whose number of draws is a setting; None leaves it to another method."""

    @property
    def num_samples(self) -> int | None:
        """Draws of each chain."""
        ...
