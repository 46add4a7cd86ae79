"""Drills of the whole system under stress: failovers, chaos, restores, a large network.

Each prints its results.
"""
