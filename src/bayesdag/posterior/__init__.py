"""The posterior, and every question it answers."""

from bayesdag.posterior.posterior import Posterior, from_draws, load

__all__ = ["Posterior", "from_draws", "load"]
