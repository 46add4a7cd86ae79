"""Benchmarks of `make bench`: each figure is one line, `bench <name> <value> <unit>`."""
