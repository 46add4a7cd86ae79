"""The one change that turns a VLL into tombstones."""

from typing import Any

from portal.vll.models import Vll


def no_longer_wanted(vll: Vll) -> dict[str, Any]:
    """Field values of the next revision, in which both ends are to be gone."""
    return {"wanted_present": False, "revision": vll.revision + 1, "in_sync": False}
