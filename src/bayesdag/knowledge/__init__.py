"""Prior knowledge about single edges: parsed from what people write, bound to columns."""

from bayesdag.knowledge.constraints import Constraints, Knowledge

__all__ = ["Constraints", "Knowledge"]
