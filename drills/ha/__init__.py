"""Failovers of the reference deployment in deploy/ha/, on this one machine: `make ha`."""
