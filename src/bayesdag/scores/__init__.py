"""Scores: local log marginal likelihoods, and draws of the functions behind them."""

from typing import Any


def in_words(score: Any) -> str:
    """The score with its prior, where it describes itself, or its name."""
    return score.describe() if hasattr(score, "describe") else type(score).__name__


def notes_of(score: Any, stats: Any) -> list[str]:
    """What the score has to say of these data, where it says something."""
    return score.notes(stats) if hasattr(score, "notes") else []
