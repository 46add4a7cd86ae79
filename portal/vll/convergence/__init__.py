"""Convergence of routers: the only package that writes RouterConvergence.

``requests`` records that routers need an intent, ``due`` finds these routers, ``claims`` lets one worker at a
time work on a router, and ``reconciliation`` continues after a restored backup.
"""
