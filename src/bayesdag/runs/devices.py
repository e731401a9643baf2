"""The devices that computations run on."""

from bayesdag.types.late_imports import jax


def on_cpu() -> bool:
    """Whether computations run on a CPU."""
    return jax.default_backend() == "cpu"
