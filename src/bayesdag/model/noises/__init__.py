"""Noise models: what is left of a variable once its parents are known."""
