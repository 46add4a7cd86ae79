"""Default names of lines, from their sites."""

import re
from collections.abc import Sequence
from itertools import chain, count

from portal.accounts.models import User
from portal.vll import queries

# The maximum length of a name without a number, so that there is space for a number.
_LONGEST = 90


def name_after(places: Sequence[str], *, user: User) -> str:
    """Return a name such as ``Zurich – Basel``.

    If ``user`` can see another line with this name, a number follows the name.
    """
    name = " – ".join(places)[:_LONGEST]
    alike = queries.vlls(user)
    for place in set(places):
        alike = alike.filter(description__icontains=place)
    taken = {_without_dashes(each) for each in alike.values_list("description", flat=True)}
    names = chain([name], (f"{name} {n}" for n in count(2)))
    return next(each for each in names if _without_dashes(each) not in taken)


def _without_dashes(name: str) -> str:
    """Return a key to compare names. ``Zurich – Basel`` and ``Zurich-Basel`` have the same key."""
    return " ".join(re.split(r"[\s–-]+", name)).casefold()
