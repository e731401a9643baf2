"""Version, kept in the source so that the package runs uninstalled."""

__version__ = "0.1.0"
