"""The neural score: networks, their evidence, their noise, and draws of their parameters."""
