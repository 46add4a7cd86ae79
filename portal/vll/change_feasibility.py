"""The feasibility of a change of a line, and the line after the change. Writes nothing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from portal.accounts.models import User
from portal.core.errors import DomainError
from portal.core.network.encapsulations import Transport
from portal.vll.errors import EndsSwapped
from portal.vll.feasibility import Existing, Feasibility, feasibility_of
from portal.vll.line_spec import LineSpec, content_of
from portal.vll.models import Vll
from portal.vll.operations.modify_line import (
    check_in_service,
    check_not_swapped,
    check_orderable,
    leased_by,
    unchanged_path,
    waits_for_approval,
)


@dataclass(frozen=True, slots=True)
class ChangeFeasibility:
    """The feasibility of a change, with the line before and after it.

    ``spec``: the line after the change. ``transport``: the present transport.
    """

    feasibility: Feasibility
    before: LineSpec
    spec: LineSpec
    transport: Transport
    needs_approval: bool

    @property
    def changes_nothing(self) -> bool:
        """Return whether the line stays the same, apart from its description."""
        return self.spec == self.before


def change_feasibility_of(
    *, user: User, vll: Vll, changes: Mapping[str, Any], now: datetime, expected_revision: int | None = None
) -> ChangeFeasibility:
    """Check everything that ``order_modify`` would check.

    Unlike ``order_modify``, this function does not refuse a request that changes nothing: ``changes_nothing``
    is then true, and the line keeps its transport.
    """
    before = content_of(vll)
    present = before.spec
    spec = present.changed(changes)
    refusals: list[DomainError] = []
    with _noting(refusals):
        check_orderable(vll, user, expected_revision=expected_revision)
    with _noting(refusals):
        check_in_service(vll)
    line = Existing(
        customer=vll.customer,
        leased=leased_by(vll, before),
        unchanged_path=unchanged_path(before, spec),
        preferred=before.allocated_transport if "transport" not in changes else None,
    )
    found = feasibility_of(user=user, spec=spec, now=now, line=line)
    if spec != present:
        try:
            check_not_swapped(before, spec)
            refusals += found.refusals
        except EndsSwapped as refusal:
            refusals.append(refusal)
    return ChangeFeasibility(
        feasibility=replace(found, refusals=refusals),
        before=present,
        spec=spec,
        transport=before.allocated_transport,
        needs_approval=waits_for_approval(user, vll.customer, present, spec),
    )


@contextmanager
def _noting(refusals: list[DomainError]) -> Iterator[None]:
    try:
        yield
    except DomainError as refusal:
        refusals.append(refusal)
