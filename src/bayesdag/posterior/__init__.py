"""The posterior, and every question it answers."""

from bayesdag.posterior.constructors import from_draws, load
from bayesdag.posterior.posterior import Posterior

__all__ = ["Posterior", "from_draws", "load"]
