"""Benchmarks of `make bench`. Each figure is one line: `bench <name> <value> <unit>`."""
