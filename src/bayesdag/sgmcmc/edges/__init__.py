"""Edge posteriors: q(W|p), the mask given the potentials."""
