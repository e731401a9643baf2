"""Suites: one file each, found by name."""
