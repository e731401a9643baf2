"""Relaxations of the sort: the gradient of an order with respect to its potentials."""
