"""Find VLLs by any text that identifies them: a name, a port, a number, an id."""

from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.lookups import IsNull

from portal.accounts.models import User
from portal.accounts.permissions import customers_named
from portal.allocation.models import LAST_GRE_KEY
from portal.core.whole_number import whole_number
from portal.inventory.models import Port
from portal.inventory.search import port_as_shown
from portal.vll.models import Order, Vll, VllEnd

_TRIGRAM = 3
_FEW_PORTS = 500
_ID_DIGITS_SHOWN, _ID_DIGITS = 8, 32


def vlls_found(text: str, *, user: User) -> Q:
    """Return the condition that a VLL matches ``text``. The caller has applied this user's scope.

    The condition repeats the ids of the user's customers. PostgreSQL can then estimate the number of their
    rows, and choose between a scan from the newest VLL and a read of all VLLs.
    """
    return _found(text) & customers_named(user)


def orders_found(text: str) -> Q:
    """Return the condition that an order's id begins with ``text``, which needs eight digits or more."""
    between = _uuids(text.strip())
    return Q(pk__range=between) if between else Q(pk__in=())


def _found(text: str) -> Q:
    """Return the condition: a union of narrow look-ups. Each uses its own index, unlike an OR over joins.

    If ``text`` matches many ports, many VLLs match too. A scan that begins at the newest VLL then soon finds
    enough of them. The condition therefore has another form, which suits this scan.
    """
    text = text.strip()
    named = Q(interface__icontains=text) | Q(router__name__icontains=text) | port_as_shown(text)
    ports = Port.objects.filter(named)
    ids = list(ports.values_list("pk", flat=True)[: _FEW_PORTS + 1])
    # PostgreSQL knows the length of a list, but greatly overestimates the number of rows of a subquery.
    lines, ends = [_described(text)], [Q(port__in=ids if len(ids) <= _FEW_PORTS else ports)]
    if (key := whole_number(text, most=LAST_GRE_KEY)) is not None:
        lines.append(Q(gre_key=key))
    if (number := whole_number(text, most=10**8 - 1)) is not None:
        lines.append(Q(vni=number))
        ends += [Q(outer_vlan=number), Q(inner_vlan=number)]
    if len(ids) > _FEW_PORTS:
        # PostgreSQL would evaluate EXISTS for all VLLs first.
        one_end = VllEnd.objects.filter(reduce(or_, ends), vll=OuterRef("pk")).values("pk")[:1]
        return reduce(or_, lines, Q(IsNull(Subquery(one_end), False)))
    found: list[QuerySet[Any, Any]] = [Vll.objects.filter(line).values("pk") for line in lines]
    found += [VllEnd.objects.filter(end).values("vll") for end in ends]
    if between := _uuids(text):
        found += [
            Vll.objects.filter(pk__range=between).values("pk"),
            Order.objects.filter(pk__range=between).values("vll"),
        ]
    return Q(pk__in=found[0].union(*found[1:]))


def _described(text: str) -> Q:
    """Match a part of the description, or the start of a word if ``text`` is too short for trigrams."""
    if len(text) >= _TRIGRAM:
        return Q(description__icontains=text)
    return Q(description__istartswith=text) | Q(description__icontains=f" {text}")


def _uuids(text: str) -> tuple[UUID, UUID] | None:
    """Return the first and last id that begin with ``text``.

    Return None for fewer than the eight digits that pages show, or if ``text`` is not the start of an id.
    """
    digits = text.lower().replace("-", "")
    if not _ID_DIGITS_SHOWN <= len(digits) <= _ID_DIGITS or set(digits) - set("0123456789abcdef"):
        return None
    return UUID(digits.ljust(_ID_DIGITS, "0")), UUID(digits.ljust(_ID_DIGITS, "f"))
