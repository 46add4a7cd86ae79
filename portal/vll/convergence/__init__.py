"""Convergence of routers: the only package that writes RouterConvergence.

``requests`` records that routers need an intent, and continues after a restored backup. ``claims`` finds the
routers that are due, and lets one worker at a time work on a router.
"""
