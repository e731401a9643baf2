"""Score function weighted by each mask's share of the likelihood."""

from bayesdag.sgmcmc.mask_gradients import SelfNormalised

build = SelfNormalised
