"""Mechanisms: the mean of each variable given its parents."""
