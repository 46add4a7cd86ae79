"""Drills of the whole system under stress: failovers, chaos, restores and a large network.

Each drill prints its results.
"""
