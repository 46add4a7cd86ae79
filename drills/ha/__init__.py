"""Failovers of the reference deployment in deploy/ha/, on one machine: `make ha`."""
