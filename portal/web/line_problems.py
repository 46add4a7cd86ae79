"""The problems of the lines that a user can see. Each kind of problem has a query with a limit."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.vll import queries
from portal.vll.models import Vll
from portal.vll.states import OperStatus

SHOWN = 5


class Trouble(models.TextChoices):
    """The kinds of problems, worst first.

    With ``?trouble=``, the overview lists the lines with one kind of problem.
    """

    DOWN = "down", _("Down")
    FAILED = "failed", _("Order failed in the last day")
    DRIFT = "drift", _("Configuration drift")


_TONES = {Trouble.DOWN: "danger", Trouble.FAILED: "danger", Trouble.DRIFT: "warning"}


@dataclass(frozen=True, slots=True)
class LineAlarm:
    """The lines with one kind of problem.

    ``vlls``: the first lines, at most ``SHOWN``. ``more``: the number of further lines.
    """

    trouble: Trouble
    tone: str
    vlls: list[Vll]
    more: int


def attention(user: User, *, down: bool, out_of_sync: bool, now: datetime) -> list[LineAlarm]:
    """Return the kinds of problems that exist, worst first.

    ``down``: whether there can be lines that are down. ``out_of_sync``: whether there can be lines that are
    not in sync. If ``down`` or ``out_of_sync`` is False, the query for this kind is left out.
    """
    lines = queries.in_service(queries.vlls(user)).prefetch_related(None)
    failed = queries.recently_failed(queries.orders(user), now=now)
    found = [
        _worry(Trouble.DOWN, lines.filter(oper_status=OperStatus.DOWN)) if down else None,
        _worry(Trouble.FAILED, failed, lambda order: order.vll),
        _worry(Trouble.DRIFT, queries.drifted(lines)) if out_of_sync else None,
    ]
    return [worry for worry in found if worry is not None and worry.vlls]


def lines_with(trouble: Trouble, rows: QuerySet[Vll], user: User, *, now: datetime) -> QuerySet[Vll]:
    """Return the lines in ``rows`` that have this kind of problem, by the rules of ``attention``."""
    if trouble == Trouble.FAILED:
        failed = queries.recently_failed(queries.orders(user), now=now)
        return rows.filter(pk__in=failed.order_by().values("vll"))
    rows = queries.in_service(rows)
    return queries.drifted(rows) if trouble == Trouble.DRIFT else rows.filter(oper_status=OperStatus.DOWN)


def _worry(
    trouble: Trouble, rows: QuerySet[Any], line_of: Callable[[Any], Vll] = lambda row: row
) -> LineAlarm:
    first = list(rows[: SHOWN + 1])
    more = rows.count() - SHOWN if len(first) > SHOWN else 0
    return LineAlarm(trouble, _TONES[trouble], [line_of(row) for row in first[:SHOWN]], more)
