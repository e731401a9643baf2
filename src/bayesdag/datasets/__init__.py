"""Data sets: generators and published measurements, each with its truth."""
