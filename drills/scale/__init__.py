"""A large network on one machine.

It shows whether the portal keeps up, what each load costs, and what becomes the bottleneck first.
"""
