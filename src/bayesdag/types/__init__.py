"""The vocabulary of the package: array aliases and the plug-in protocols.

`energy` is U = -log joint and `grad` its gradient.
"""

from bayesdag.types.arrays import (
    Array,
    Components,
    Draws,
    Facts,
    Graph,
    Graphs,
    JaxArray,
    Key,
    Keys,
    Mask,
    Params,
    ParentSets,
    PlainData,
    Potentials,
    Pytree,
    Rows,
    Weights,
)
from bayesdag.types.methods import (
    MEASUREMENTS,
    Duration,
    ExactDependence,
    Method,
    SamplingMethod,
    Timed,
    kinds_taken,
)
from bayesdag.types.model import (
    DiscreteNodes,
    Heteroscedastic,
    Mechanism,
    Noise,
    PostNonlinear,
    StructurePrior,
)
from bayesdag.types.monitors import Announcer, Monitor, Recorder, StatusReporter
from bayesdag.types.scores import Coarsened, ExpensiveScore, NoiseAveraged, Score, WeighsFunctions
from bayesdag.types.sgmcmc import Edges, Relaxation, Sampler

__all__ = [
    "Announcer",
    "Array",
    "Coarsened",
    "Components",
    "DiscreteNodes",
    "Draws",
    "Duration",
    "Edges",
    "ExactDependence",
    "ExpensiveScore",
    "Facts",
    "Graph",
    "Graphs",
    "Heteroscedastic",
    "JaxArray",
    "Key",
    "Keys",
    "MEASUREMENTS",
    "Mask",
    "Mechanism",
    "Method",
    "Monitor",
    "Noise",
    "NoiseAveraged",
    "Params",
    "ParentSets",
    "PlainData",
    "PostNonlinear",
    "Potentials",
    "Pytree",
    "Recorder",
    "Relaxation",
    "Rows",
    "Sampler",
    "SamplingMethod",
    "Score",
    "StatusReporter",
    "StructurePrior",
    "Timed",
    "WeighsFunctions",
    "Weights",
    "kinds_taken",
]
