"""Score function, each mask judged against the average of the others."""

from bayesdag.sgmcmc.mask_gradients import LeaveOneOut

build = LeaveOneOut
