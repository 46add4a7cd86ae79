"""UPDATEs whose conditions name another table by a join: the fixture ``no_joined_updates`` finds them."""

import re
import sys
from types import FrameType

from devstack.folders import ROOT

_PRODUCT = tuple(f"{ROOT / folder}/" for folder in ("portal", "provisioning"))
_OWN = (*_PRODUCT, *(f"{ROOT / folder}/" for folder in ("tests", "devstack", "bench", "drills")))
# Django names the table of a subquery U0.
_SUBQUERY = re.compile(
    r'UPDATE ("\w+") SET .* IN \(SELECT (?:DISTINCT )?U0\."\w+".* FROM \1 U0 (?:INNER|LEFT OUTER) JOIN '
)
_LOCK = re.compile(r" FOR (?:NO KEY )?UPDATE")


def has_join(sql: str) -> bool:
    """Return whether Django moved the conditions of this UPDATE into a subquery without a lock."""
    found = _SUBQUERY.match(sql)
    return found is not None and not _LOCK.search(sql, found.end())


def sent_by_the_product() -> bool:
    """Return whether the caller's caller, or its closest caller in our own code, is the product's code."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_PRODUCT)
