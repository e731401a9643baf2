"""Algorithm 2 of the paper: several fresh masks per step, SG-MCMC on the logits."""

from bayesdag.sgmcmc.mask_moves import AveragedMasks

build = AveragedMasks
