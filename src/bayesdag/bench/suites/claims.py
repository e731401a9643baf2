"""Claims of cost in the published comparison: Sinkhorn's sweeps, DiBS' particles, chains."""

from bayesdag.bench.fits import FitRunner
from bayesdag.bench.runners import Call
from bayesdag.bench.suite import Part, Size, Suite, Table, Trial
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.model.mechanisms.linear import Linear

FIRST_SEED = 1000  # smaller seeds are for development
NUM_MATRICES = {"quick": 4, "paper": 20}
VARIABLES = {"quick": (5,), "paper": (10, 20, 50)}  # of Sinkhorn's matrices
PARTICLES = {"quick": (2, 4), "paper": (20, 40, 80, 160, 320, 640, 1280)}
CHAINS = {"quick": (2, 4), "paper": (10, 20, 40, 80, 160, 320)}
NUM_REPEATS = {"quick": 1, "paper": 3}  # of particles; chains of several sets would run as one
MANY = 320  # particles from which on the exponent is fitted apart
# Chains are timed on five variables, 500 rows.
SMALL = Synthetic(
    num_variables=5, edges_per_node=1, mechanism="signed_linear", num_train=500, num_test=0
)
TIMES = {"CPU s per step": "step_cpu .5f", "wall s per step": "step_seconds .5f"}


def build(size: Size) -> Suite:
    """The suite of this size."""
    return Suite(
        title="Claims of cost, measured",
        caption="The paper: Sinkhorn needs over 1000 iterations where scores have full rank, and "
        "about 300 where they have rank one; DiBS is quadratic in particles, SG-MCMC linear in "
        "chains. An exponent is the slope of the logarithm of the time over that of the number.",
        parts=(
            Part("sinkhorn", _seeds(size, NUM_MATRICES), _sweeps(size)),
            *(Part("particles", _repeats(size, num), _dibs(size, num)) for num in PARTICLES[size]),
            *(
                Part("chains", (Trial({"chains": num}, FIRST_SEED, SMALL),), _sgmcmc(size, num))
                for num in CHAINS[size]
            ),
        ),
        tables=_tables(),
    )


def _seeds(size: Size, num: dict[str, int]) -> tuple[Trial, ...]:
    return tuple(Trial({}, FIRST_SEED + k, None) for k in range(num[size]))


def _repeats(size: Size, num: int) -> tuple[Trial, ...]:
    """So many particles, on several data sets."""
    setting = {"particles": num, "range": f"{MANY} or more" if num >= MANY else f"below {MANY}"}
    return tuple(Trial(setting, FIRST_SEED + k, None) for k in range(NUM_REPEATS[size]))


def _sweeps(size: Size) -> dict[str, Call]:
    return {
        f"{rank}, d = {d}": Call(
            "claims:sinkhorn_sweeps",
            {"d": d, "temperature": 0.2, "full_rank": rank == "full rank", "deviation": 0.5},
        )
        for d in VARIABLES[size]
        for rank in ("rank one", "full rank")
    }


def _dibs(size: Size, num: int) -> dict[str, Call]:
    steps, d = {"quick": (2, 5), "paper": (10, 20)}[size]
    given = {"d": d, "num_particles": num, "num_steps": steps}
    return {"dibs": Call("claims:particle_seconds", given)}


def _sgmcmc(size: Size, num: int) -> dict[str, FitRunner]:
    method = BayesDAG(
        mechanism=Linear(),
        num_chains=num,
        num_warmup=0,
        num_samples={"quick": 2, "paper": 20}[size],
        thinning=10,
        batch_size=100,
    )
    return {"bayesdag": FitRunner(method)}


def _tables() -> tuple[Table, ...]:
    kernel = {"CPU s per step": "step_cpu .5f", "of these in the kernel": "kernel_cpu .5f"}
    return (
        Table(
            "Sweeps of Sinkhorn until sums are one within 0.001",
            ("method",),
            {"mean": "sweeps .0f", "most": "sweeps max .0f"},
            "Temperature 0.2; scores of full rank have the size of those of rank one, and Gumbel "
            "noise as BCD Nets and DDS add it. The count stops at 20000.",
            parts=("sinkhorn",),
        ),
        Table(
            "Exponent of particles, DiBS",
            ("method", "range"),
            {
                "step": "step_cpu exponent:particles .2f",
                "kernel alone": "kernel_cpu exponent:particles .2f",
            },
            "CPU seconds; linear functions, 20 variables, 16 Monte-Carlo graphs.",
            parts=("particles",),
        ),
        Table("", ("particles",), kernel, parts=("particles",)),
        Table(
            "Exponent of chains, SG-MCMC",
            ("method",),
            {"step": "step_cpu exponent:chains .2f"},
            "CPU seconds; the paper's engine, linear functions, 5 variables, batches of 100 rows.",
            parts=("chains",),
        ),
        Table("", ("chains",), TIMES, parts=("chains",)),
    )
