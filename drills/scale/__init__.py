"""A large network on one machine.

Whether the portal keeps up, the cost of each load, the first bottleneck.
"""
