"""What a customer sees of an order beforehand: whether it is possible, over which path, and why not.

Each function gives the context of orders/_serviceability.html for a valid form.
"""

from datetime import datetime
from typing import Any

from portal.accounts.models import User
from portal.core import clock
from portal.core.frames import SvcMtuOutOfRange, carried_frame
from portal.core.transport import Transport
from portal.vll import words
from portal.vll.change_outlook import change_outlook
from portal.vll.models import Vll
from portal.vll.operations.acknowledge import needs_approval
from portal.vll.operations.assess import AUTO, LineRequest
from portal.vll.outlook import Outlook, outlook
from portal.web.asked import asked_between
from portal.web.forms.change import ChangeForm
from portal.web.forms.order import OrderForm
from portal.web.line_path import LinePath, line_path

# What stands for ``auto`` in the path of a line that is refused: the cheapest tunnel of each family.
_STANDS_FOR_AUTO = (Transport.VXLAN4, Transport.VXLAN6)


def prospect_of(form: OrderForm, user: User) -> dict[str, Any]:
    """Of a new line."""
    request, now = form.asked(), clock.now()
    found = outlook(user=user, request=request, now=now, hold=form.hold_id)
    ends = [found.ends[side] for side in "az" if side in found.ends]
    customer = ends[0].port.customer if ends else None
    approval = customer is not None and needs_approval(user, customer, request.cir_bps + request.eir_bps)
    return _context(found, request, now) | {"needs_approval": approval}


def change_prospect_of(form: ChangeForm, user: User, vll: Vll) -> dict[str, Any]:
    """Of a line in service; ``change`` says what would differ, and ``asked`` from what to what."""
    now = clock.now()
    found = change_outlook(
        user=user, vll=vll, changes=form.changes(), now=now, expected_revision=form.revision
    )
    return _context(found.outlook, found.request, now) | {
        "change": found,
        "asked": asked_between(found.before, found.request),
        "needs_approval": found.needs_approval,
    }


def _context(found: Outlook, request: LineRequest, now: datetime) -> dict[str, Any]:
    return {
        "outlook": found,
        "reasons": [words.sentence(refusal) for refusal in found.refusals],
        "request": request,
        "path": _path(found, request, now),
    }


def _path(found: Outlook, request: LineRequest, now: datetime) -> LinePath | None:
    """The path of what would be ordered; of a refused line the path that it was refused over."""
    transport = found.serviceable.transport if found.serviceable else _looked_at(found, request)
    if transport is None or len(found.ends) < len("az"):
        return None
    try:
        frame = carried_frame(request.svc_mtu, carried_tags=request.carried_tags)
    except SvcMtuOutOfRange:
        return None
    routers = {side: end.port.router for side, end in found.ends.items()}
    return line_path(a=routers["a"], z=routers["z"], transport=transport, frame=frame, now=now)


def _looked_at(found: Outlook, request: LineRequest) -> Transport | None:
    if request.transport != AUTO:
        return Transport(request.transport)
    carrying = {option.transport for option in found.options if option.largest_svc_mtu is not None}
    return next((transport for transport in _STANDS_FOR_AUTO if transport in carrying), None)
