"""Scores: local log marginal likelihoods, and draws of the functions behind them."""
