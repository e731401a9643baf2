"""Long runs: a compiled loop, what it shows while it runs, and what outlives a kill."""
