"""Failovers of the reference deployment in deploy/ha/, all on one machine: `make ha`."""
