"""Errors of operations on lines, by subject.

Callers import from this package. It has no list of names, because each class would be in two places.
"""

from portal.vll.errors.line_requests import *  # noqa: F403
from portal.vll.errors.orders import *  # noqa: F403
from portal.vll.errors.routers import *  # noqa: F403
