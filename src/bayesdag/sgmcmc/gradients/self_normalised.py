"""Score function weighted by each mask's fraction of the likelihood."""

from bayesdag.sgmcmc.mask_gradients import SelfNormalised

build = SelfNormalised
