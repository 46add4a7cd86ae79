"""Names for lines that nobody has named: after their places."""

import re
from collections.abc import Sequence
from itertools import chain, count

from portal.accounts.models import User
from portal.vll import queries

# With a number behind it, it still fits.
_LONGEST = 90


def name_after(places: Sequence[str], *, user: User) -> str:
    """``Zurich – Basel``, with a number where ``user`` sees such a line already."""
    name = " – ".join(places)[:_LONGEST]
    alike = queries.vlls(user)
    for place in set(places):
        alike = alike.filter(description__icontains=place)
    taken = {_without_dashes(each) for each in alike.values_list("description", flat=True)}
    names = chain([name], (f"{name} {n}" for n in count(2)))
    return next(each for each in names if _without_dashes(each) not in taken)


def _without_dashes(name: str) -> str:
    """``Zurich – Basel`` and ``Zurich-Basel`` are one name to who reads them."""
    return " ".join(re.split(r"[\s–-]+", name)).casefold()
