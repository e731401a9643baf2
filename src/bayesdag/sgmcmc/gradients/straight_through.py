"""Gradient of a mask's entries, passed on by the slope of a Gumbel-sigmoid."""

from bayesdag.sgmcmc.mask_gradients import StraightThrough

build = StraightThrough
