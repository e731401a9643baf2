"""One mask per chain, its entries flipped by Metropolis' rule."""

from bayesdag.sgmcmc.mask_moves import Flips

build = Flips
