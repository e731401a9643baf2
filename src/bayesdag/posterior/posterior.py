"""A posterior over causal graphs and the functions on their edges.

Everything a fit leaves behind, as arrays with names. Every question about it is answered
by a function of plain arrays in a module of its own; the methods here only hand it over.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from bayesdag.data import Dataset, read
from bayesdag.errors import InputError
from bayesdag.model.scm import SCM
from bayesdag.posterior import (
    adjustment,
    assumptions,
    check_result,
    column_names,
    contexts,
    diagnostics,
    documents,
    edge_evidence,
    effects,
    estimates,
    experiment_design,
    exports,
    fitted_data,
    graph_queries,
    observed_reliability,
    predictive_checks,
    storage,
)
from bayesdag.posterior.check_result import Check
from bayesdag.posterior.contexts import Contexts
from bayesdag.posterior.diagnostics import Diagnostics
from bayesdag.posterior.drawings import PosteriorViews
from bayesdag.posterior.effect_result import Counterfactual, Effect
from bayesdag.posterior.estimates import Estimate
from bayesdag.posterior.level_codes import LevelCodes, level_codes
from bayesdag.posterior.levels import usual_levels
from bayesdag.posterior.libraries import DataFrame, DiGraph, data_frame
from bayesdag.posterior.simulation import Ensemble
from bayesdag.random import key_of
from bayesdag.types import Draws, Params, PlainData, Weights

if TYPE_CHECKING:
    import xarray

Labelled = Any  # a table of ordered pairs, or two: probabilities and their errors


@dataclass(frozen=True, repr=False)
class Posterior(PosteriorViews):
    """Weighted joint draws of graphs and functions.

    Attributes:
        graphs: `graphs[c, s, i, j] = 1` when draw s of chain c has the edge i -> j.
        weights: weight of every draw; all of them sum to 1.
        model: the structural causal model that `params` belong to.
        params: its parameters, every leaf with leading dimensions (chain, draw).
        names: column names, in the order of the nodes.
        stats: `log_joint` and `num_edges` of every draw, and what a method adds.
        summary: what is kept of the data (not the rows).
        provenance: version, method with all settings, seed, data hash, model and prior in words.
        marginals: exact `edge` and `ancestor` probabilities where a method knows them.
        state: what a sampler needs to go on from here.
        evidence: what ranks edges of equal probability, as `fit` and `merge` have computed it;
            None: computed when a question needs it.
    """

    graphs: Draws
    weights: Weights
    model: SCM
    params: Params
    names: tuple[str, ...]
    stats: dict[str, Float[np.ndarray, "chain draw"]]
    summary: PlainData
    provenance: PlainData
    marginals: dict[str, Float[np.ndarray, "d d"]] | None = None
    state: dict[str, np.ndarray] | None = None
    evidence: Float[np.ndarray, "d d"] | None = None

    def __repr__(self) -> str:
        own = ~self.contexts.mask
        likely = int((self.edge_matrix()[np.ix_(own, own)] > 0.5).sum())
        compared = f", {(~own).sum()} compared environments" if self.contexts else ""
        drawn = f"{self.num_chains} × {self.num_draws} draws"
        size = f"{own.sum()} variables{compared}, {drawn}"
        fit = f"; {self.checked.headline}" if self.checked else ""
        return f"<Posterior: {size}, {likely} edges more probable than not{fit}>"

    @property
    def num_chains(self) -> int:
        """Independent runs."""
        return self.graphs.shape[0]

    @property
    def num_draws(self) -> int:
        """Draws per chain."""
        return self.graphs.shape[1]

    @property
    def num_variables(self) -> int:
        """Nodes of every graph, context variables included."""
        return self.graphs.shape[2]

    @property
    def contexts(self) -> Contexts:
        """Where rows come from: context variables, the last nodes of every graph."""
        return contexts.from_summary(self.summary, self.names)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the nodes that are variables, not contexts."""
        return self.names[: int((~self.contexts.mask).sum())]

    def among_variables(self) -> "Posterior":
        """The same draws of graphs without context variables: what a true graph is held against.

        Its functions are those of the whole; ask it about graphs only.
        """
        d = len(self.variables)
        inner = {name: matrix[:d, :d] for name, matrix in (self.marginals or {}).items()}
        summary = {k: v for k, v in self.summary.items() if not k.startswith("environment")}
        return replace(
            self,
            graphs=self.graphs[:, :, :d, :d],
            names=self.variables,
            summary=summary,
            marginals=inner if self.marginals is not None else None,
            evidence=None if self.evidence is None else self.evidence[:d, :d],
        )

    def with_evidence(self) -> "Posterior":
        """The same with the evidence of its draws, so that no question computes it again."""
        tied = graph_queries.tied_edges(self.edge_matrix())
        found = edge_evidence.matrix(self._ensemble, tied, self.summary)
        return replace(self, evidence=found)

    def evidence_matrix(self, among_variables: bool = False) -> Float[np.ndarray, "d d"]:
        """Evidence for edges that share their probability with another, NaN elsewhere.

        Args:
            among_variables: context variables are left out, also of what an edge may share its
                probability with.
        """
        d = len(self.variables) if among_variables else self.num_variables
        whole = self if self.evidence is not None else self.with_evidence()
        tied = tuple(graph_queries.tied_edges(self.edge_matrix()[:d, :d]).T)
        found = np.full((d, d), np.nan)
        found[tied] = np.asarray(whole.evidence)[tied]
        return found

    def environment_targets(self, with_error: bool = False) -> DataFrame:
        """What each environment acts on, compared with the reference, most probable first.

        `probability` is that of a direct action: a soft intervention, after which the variable
        still follows its causes, but differently. `at all` is that of any action, direct or
        through other variables.
        """
        return data_frame(self.environment_columns(with_error))

    def environment_columns(self, with_error: bool = False) -> dict[str, np.ndarray]:
        """The columns of `environment_targets`, without pandas."""
        drawn = (self.graphs, self.weights, self.marginals)
        edge = graph_queries.edge_probabilities(*drawn, with_error)
        path = graph_queries.path_probabilities(*drawn).value
        return self.contexts.targets(self.names, edge, path)

    def read(self, data: object, *, interventions: object = None) -> Dataset:
        """The table in `data`, prepared and understood as what was fitted."""
        environments = {one.column: one.reference for one in self.contexts.environments}
        if isinstance(data, Dataset):
            known = {} if data.environment else environments
            found = read(data, interventions=interventions, environment=known or None)
            return fitted_data.with_kinds_of(self.summary, found)
        asked = (data, interventions, environments or None)
        return fitted_data.read_again(self.summary, self.variables, *asked)

    def edge_matrix(self) -> Float[np.ndarray, "d d"]:
        """P(i -> j): exact where the method knows it, else the weighted share of draws."""
        return graph_queries.edge_probabilities(self.graphs, self.weights, self.marginals).value

    def edge_probabilities(self, with_error: bool = False) -> Labelled:
        """P(source -> target); with its Monte-Carlo error, a second table, when asked for.

        Of variables only: what environments act on is in `environment_targets`.
        """
        drawn = (self.graphs, self.weights, self.marginals)
        found = graph_queries.edge_probabilities(*drawn, with_error)
        d = len(self.variables)
        parts = [part[:d, :d] for part in found if part is not None]
        tables = [column_names.square(self.variables, part) for part in parts]
        return tables[0] if found.error is None else tuple(tables)

    def path_probabilities(self, with_error: bool = False) -> Labelled:
        """P(a directed path leads from source to target): a cause, directly or not."""
        drawn = (self.graphs, self.weights, self.marginals)
        return self._labelled(graph_queries.path_probabilities(*drawn, with_error))

    def markov_blanket_probabilities(self, with_error: bool = False) -> Labelled:
        """P(one variable is in the Markov blanket of the other)."""
        return self._labelled(
            graph_queries.markov_blanket_probabilities(self.graphs, self.weights, with_error)
        )

    def v_structures(self, at_least: float | int = 0.05) -> DataFrame:
        """Colliders left -> middle <- right of unlinked causes, with their probability."""
        return graph_queries.v_structures(self.graphs, self.weights, self.names, at_least)

    def probability(
        self, predicate: Callable[[DiGraph], bool], with_error: bool = False
    ) -> float | tuple[float, float]:
        """P(predicate), a function of a networkx graph with column names."""
        return _number(
            graph_queries.probability(predicate, self.graphs, self.weights, self.names, with_error)
        )

    def equivalence_classes(self) -> graph_queries.EquivalenceClasses:
        """Markov equivalence classes with their mass, and which directions they compel.

        Nothing acts on environments: directions that follow from this are compelled, too.
        """
        drawn = (self.graphs, self.weights, self.names)
        return graph_queries.equivalence_classes(*drawn, self.contexts.mask)

    def most_probable_graph(self, by: str = "frequency") -> DiGraph:
        """The graph drawn most often, or by="log_joint" the one of the best draw."""
        if by not in {"frequency", "log_joint"}:
            raise InputError(f"by is 'frequency' or 'log_joint', not {by!r}")
        score = self.stats["log_joint"] if by == "log_joint" else None
        return self._digraph(graph_queries.most_probable_graph(self.graphs, self.weights, score))

    def median_graph(self) -> DiGraph:
        """Edges more probable than not; they may close a cycle."""
        return self._digraph(graph_queries.median_graph(self.edge_matrix()))

    def consensus_graph(self, threshold: float | int = 0.5) -> DiGraph:
        """The DAG closest to the edge probabilities: fewest wrong edges on average."""
        return self._digraph(graph_queries.consensus_graph(self.edge_matrix(), threshold))

    def adjustment_sets(self, cause: str, outcome: str, limit: int = 20) -> DataFrame:
        """Sets to adjust for, with the probability that each is valid."""
        return adjustment.adjustment_sets(
            self.graphs, self.weights, self.names, cause, outcome, limit
        )

    def adjustment_probability(
        self, cause: str, outcome: str, adjust_for: Iterable[str], with_error: bool = False
    ) -> float | tuple[float, float]:
        """P(adjusting for these columns gives the total effect of cause on outcome)."""
        return _number(
            adjustment.adjustment_probability(
                self.graphs, self.weights, self.names, cause, outcome, adjust_for, with_error
            )
        )

    def effect(
        self,
        cause: str,
        outcome: str,
        values: Sequence[float | int | str] | None = None,
        *,
        given: Mapping[str, float | int | str] | None = None,
        num_rows: int = 1000,
        seed: int = 0,
    ) -> Effect:
        """Change in the mean of `outcome` when `cause` is set from values[0] to values[1].

        By default from one standard deviation below the mean of the cause to one above, or
        from the lower to the higher value of a binary column. Levels go by their labels. The
        outcome "species=setosa" is the probability of that level; without a label it is the
        mean, of ordered levels that of their codes 0, 1, … and of a binary column the
        probability of its second level.
        """
        columns, key = self.summary["columns"], key_of(seed)
        named, level = self._level_codes.outcome(self.names, outcome)
        column_names.pair(self.names, cause, named)
        between = self._level_codes.two_codes(cause, values)
        known = self._level_codes.codes(given)
        asked = (cause, named, between, known, num_rows, level)
        found = effects.effect(key, self._ensemble, columns, *asked)
        labelled = self._level_codes.labelled(found, level)
        return replace(labelled, outcome=outcome, given=dict(given or {}))

    def sample(
        self, num_rows: int, *, do: Mapping[str, float | int | str] | None = None, seed: int = 0
    ) -> DataFrame:
        """New rows from the posterior predictive, after setting the variables in `do`."""
        known = self._level_codes
        drawn = effects.sample(key_of(seed), self._ensemble, num_rows, known.codes(do))
        return known.decoded(drawn)

    def counterfactual(self, rows: object, do: Mapping[str, float | int | str]) -> Counterfactual:
        """Counterfactual values of the given rows, had the variables in `do` been set.

        Rows may be a part of the table as it was before it was prepared: logarithms are taken
        again. Levels go by their labels and come back as codes. No data tell what a single level
        would have been; see `Counterfactual`.
        """
        known = self._level_codes
        table = known.encoded(fitted_data.units(self.summary, rows))
        return effects.counterfactual(self._ensemble, table, known.codes(do) or {})

    def next_experiment(
        self,
        candidates: Sequence[str] | None = None,
        *,
        about: Effect | Sequence[str] | None = None,
        cost: Mapping[str, float | int] | None = None,
        levels: Mapping[str, Sequence[float | int]] | None = None,
        seed: int = 0,
        **settings: int,
    ) -> DataFrame:
        """Experiments ranked by what they teach about the graph, an edge or an effect.

        Unless `levels` are given, each variable is set one standard deviation below and
        above its mean, or to both values of a binary column. `settings` are those of
        `experiment_design.next_experiment`.
        """
        return experiment_design.next_experiment(
            key_of(seed),
            self._ensemble,
            usual_levels(self.summary["columns"]) | dict(levels or {}),
            about=about,
            candidates=candidates,
            cost=cost,
            **settings,
        )

    def diagnostics(self) -> Diagnostics:
        """Agreement of the chains, with a verdict in words."""
        origin = self.provenance
        how = (bool(origin.get("independent", False)), origin.get("members", ()))
        found = diagnostics.diagnose(self.graphs, self.weights, self.stats, self.names, *how)
        searches = origin.get("search", {}).get("disagreement", {})
        return replace(found, search=searches.get("words", ""))

    def check(self, data: object, seed: int = 0) -> Check:
        """Whether the model fits the rows it was fitted to; other rows are refused."""
        dataset = self.read(data) if not isinstance(data, Dataset) else data
        dataset = fitted_data.with_kinds_of(self.summary, dataset)
        predictive_checks.refuse_other_data(self.provenance, self.summary, dataset)
        if dataset.missing is not None:
            return fitted_data.check_of_completions(self.checked)
        found = predictive_checks.check(key_of(seed), self._ensemble, dataset)
        fitted = self.provenance.get("chosen", self.provenance.get("method"))
        model = observed_reliability.model_of(fitted)
        # Unsure arrows take memory out of residuals that a fit has not taken for explained.
        repetition = max(found.repetition, self.provenance.get("repetition", 1.0))
        return replace(found, model=model, num_rows=dataset.num_rows, repetition=repetition)

    @property
    def checked(self) -> Check | None:
        """Check that `fit` made of the model against the rows; None: not checked."""
        summary = self.provenance.get("check")
        return None if summary is None else check_result.from_summary(summary)

    def assumption(self, variable: str) -> str:
        """What the directions around a variable rest on, and how far the rows contradict it."""
        column_names.node(self.variables, variable)
        checked = self.checked
        if checked is None:
            return f"directions around {variable} rest on the model, which was not checked"
        weights = self.provenance.get("function_weights", {}).get(variable)
        has_levels = bool(self.summary["columns"][variable].get("levels"))
        return assumptions.in_words(checked, variable, weights, has_levels)

    def edge_table(
        self,
        top: int | None = None,
        with_error: bool = False,
        *,
        variable: str | None = None,
        with_evidence: bool = False,
    ) -> DataFrame:
        """Every possible edge, or those of `variable`, most probable first; or the `top` of it.

        With evidence, edges of equal probability are ranked by `edge_evidence`. Edges out of
        context variables are in `environment_targets`, and here where `variable` is named.
        """
        columns = self.edge_columns(top, with_error, variable=variable, with_evidence=with_evidence)
        return data_frame(columns)

    def edge_columns(
        self,
        top: int | None = None,
        with_error: bool = False,
        *,
        variable: str | None = None,
        with_evidence: bool = False,
    ) -> dict[str, np.ndarray]:
        """The columns of `edge_table`, without pandas."""
        if self.contexts and variable is None:
            found = self.evidence_matrix(among_variables=True) if with_evidence else None
            drawn = self.among_variables()
            drawn = (drawn.graphs, drawn.weights, drawn.names, drawn.marginals)
            return graph_queries.edge_columns(*drawn, top, with_error, evidence=found)
        drawn = (self.graphs, self.weights, self.names, self.marginals)
        found = self.evidence_matrix() if with_evidence else None
        return graph_queries.edge_columns(
            *drawn, top, with_error, variable=variable, evidence=found
        )

    def describe(self) -> list[str]:
        """Description in words: the fit first, then model, prior and draws."""
        stated = [key for key in ("model", "prior") if key in self.provenance]
        lines = [f"{key}: {self.provenance[key]}" for key in stated]
        size = f"draws: {self.num_draws} per chain, {self.num_chains} chain(s)"
        temperature = self.provenance.get("temperature", 1.0)
        if temperature != 1.0:
            lines.append(f"temperature: {temperature:g} (1 is the posterior)")
        fit = self.checked.lines() if self.checked else []
        notes = self.provenance.get("notes", [])
        return [*fit, *lines, *self.contexts.in_words(), size, *notes]

    def to_networkx(self, threshold: float | int = 0.5) -> DiGraph:
        """Edges with probability above `threshold`, each with its `probability`.

        Such a graph may hold a cycle: it summarises marginals, it is not a draw.
        """
        return self._digraph(graph_queries.median_graph(self.edge_matrix(), threshold))

    def weighted_graphs(self) -> list[tuple[DiGraph, float]]:
        """Every different graph with its probability, most probable first."""
        different = estimates.distinct(self.graphs, self.weights)
        return exports.weighted_graphs(self.names, different.graphs, different.mass)

    def to_lingam(self, threshold: float | int = 0.5) -> Float[np.ndarray, "d d"]:
        """Probabilities of the consensus edges; entry [i, j] is about j -> i, as in lingam."""
        probability = self.edge_matrix()
        return exports.to_lingam(
            probability * graph_queries.consensus_graph(probability, threshold)
        )

    def to_causallearn(self, threshold: float | int = 0.5) -> np.ndarray:
        """The consensus DAG as causal-learn marks it: [i, j] = -1 and [j, i] = 1 for i -> j."""
        return exports.to_causallearn(graph_queries.consensus_graph(self.edge_matrix(), threshold))

    def export(self, path: str | Path, threshold: float | int = 0.5) -> None:
        """Write the consensus DAG as .dot, .graphml, .gml or .csv, by the path's suffix."""
        text = exports.text(self.consensus_graph(threshold), Path(path).suffix.lstrip("."))
        storage.write_whole(Path(path), lambda to: to.write_text(text, encoding="utf-8"))

    def to_datatree(self) -> "xarray.DataTree":
        """Labelled arrays in the ArviZ schema, ready for `arviz` or a netCDF file."""
        return storage.to_datatree(documents.document_of(self))

    def save(self, path: str | Path) -> None:
        """Write to a netCDF file, whole or not at all; equal results give equal bytes."""
        storage.save(documents.document_of(self), Path(path))

    @property
    def _level_codes(self) -> LevelCodes:
        return level_codes(self.summary["columns"], self.variables)

    @property
    def _ensemble(self) -> Ensemble:
        drawn = (self.params, self.graphs, self.weights, self.names)
        return Ensemble(self.model, *drawn, self.contexts)

    def _digraph(self, graph: np.ndarray) -> DiGraph:
        return column_names.digraph(self.names, graph, self.edge_matrix())

    def _labelled(self, found: Estimate) -> Labelled:
        tables = [column_names.square(self.names, part) for part in found if part is not None]
        return tables[0] if found.error is None else tuple(tables)


def _number(found: Estimate) -> float | tuple[float, float]:
    return found.value if found.error is None else (found.value, found.error)
