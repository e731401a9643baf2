"""The settings that the paper's two engines share."""

from dataclasses import KW_ONLY, dataclass

from bayesdag.model.mechanisms.neural import NeuralMechanism
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.priors.density import DensityGrid
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn
from bayesdag.sgmcmc.samplers.adam_sghmc import AdamSGHMC
from bayesdag.types import Mechanism, Noise, Relaxation, Sampler, StructurePrior


@dataclass(frozen=True)
class EngineSettings:
    """Model, samplers and schedule of the chains; an engine adds its own.

    Attributes:
        mechanism: linear or neural.
        noise: of the residuals.
        relaxation: supplies the gradient of the order.
        prior: of the graph given its order; by default the edge density is unknown.
        sparsity: λ_s, a cost of every edge *instead* of `prior`.
        sampler: of functions and noise scales; its gain never stops adapting, because an edge
            that appears later brings a steeper gradient than any before: under a gain frozen
            before that, the energy soon becomes non-finite.
        potential_sampler: of the potentials; None: the same.
        temperature: the target is exp(-U / temperature), whatever the number of chains.
        start_heat: how many times less the data count for orders and edges (not for functions)
            at the first step; during the first half of the warm-up this falls to 1. Functions
            learned under many graphs can tell them apart; those learned under one graph
            reject every other.
        num_chains: chains that run side by side.
        num_warmup: steps before the first draw counts.
        num_samples: draws kept per chain.
        thinning: steps between two draws.
        batch_size: rows per step; all of them where there are not more.
        correct_noise: whether mini-batch noise is taken out of the injected noise.
        potential_scale: prior deviation of the potentials.
        init_scale: their deviation at the start.
        tile_rows: rows handled at once; None chooses by device.
    """

    mechanism: Mechanism = NeuralMechanism()
    noise: Noise = Gaussian()
    relaxation: Relaxation = Sinkhorn()
    _: KW_ONLY
    prior: StructurePrior = DensityGrid()
    sparsity: float | None = None
    sampler: Sampler = AdamSGHMC(num_adapt=None)
    potential_sampler: Sampler | None = None
    temperature: float = 1.0
    start_heat: float = 3000.0
    num_chains: int = 10
    num_warmup: int = 5000
    num_samples: int = 50
    thinning: int = 40
    batch_size: int = 512
    correct_noise: bool = True
    potential_scale: float = 0.1
    init_scale: float = 0.01
    tile_rows: int | None = None
