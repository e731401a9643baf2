"""Samplers: State, init, step."""
