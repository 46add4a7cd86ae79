"""Problems of the lines that a reader may see; a bounded look at each kind."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.vll import queries
from portal.vll.models import Vll
from portal.vll.states import Lifecycle, OperStatus

SHOWN = 5

Text = str | Promise


@dataclass(frozen=True, slots=True)
class LineAlarm:
    """``vlls``: up to ``SHOWN`` lines with this trouble; ``more``: there are others."""

    title: Text
    tone: str
    vlls: list[Vll]
    more: bool


def attention(user: User, *, down: bool, out_of_sync: bool, now: datetime) -> list[LineAlarm]:
    """Only what there is, worst first. ``down`` and ``out_of_sync``: whether any is; else none is read."""
    lines = queries.vlls(user).filter(lifecycle=Lifecycle.ACTIVE).prefetch_related(None)
    failed = queries.failed_lately(queries.orders(user), now=now)
    found = [
        _worry(_("Down"), "danger", lines.filter(oper_status=OperStatus.DOWN)) if down else None,
        _worry(_("Order failed in the last day"), "danger", failed, lambda order: order.vll),
        _worry(_("Configuration drift"), "warning", queries.drifted(lines)) if out_of_sync else None,
    ]
    return [worry for worry in found if worry is not None and worry.vlls]


def _worry(
    title: Text, tone: str, rows: QuerySet[Any], line_of: Callable[[Any], Vll] = lambda row: row
) -> LineAlarm:
    first = list(rows[: SHOWN + 1])
    return LineAlarm(title, tone, [line_of(row) for row in first[:SHOWN]], len(first) > SHOWN)
