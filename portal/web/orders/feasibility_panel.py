"""The preview of an order: whether it is possible, its path, and the reasons against it.

The functions return the context of orders/_feasibility.html for a valid form. They add each refusal to the
field of the form that the refusal concerns.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from portal.accounts.models import User
from portal.core import clock
from portal.core.network.encapsulations import Transport
from portal.core.network.required_mtu import SvcMtuOutOfRange, carried_frame
from portal.vll.feasibility import Feasibility, change_feasibility_of, feasibility_of
from portal.vll.line_spec import AUTO, LineSpec
from portal.vll.models import Vll
from portal.vll.operations.order_record import needs_approval
from portal.web.lines.change_form import ChangeForm
from portal.web.lines.paths import LinePath, line_path
from portal.web.orders.order_diff_rows import diff_rows_between
from portal.web.orders.order_form import OrderForm, Problem


def feasibility_context(form: OrderForm, user: User) -> dict[str, Any]:
    """Return the context for the preview of a new line."""
    spec, now = form.spec(), clock.now()
    found = feasibility_of(user=user, spec=spec, now=now, reservation=form.reservation_id)
    ends = [found.ends[side] for side in "az" if side in found.ends]
    customer = ends[0].port.customer if ends else None
    approval = customer is not None and needs_approval(user, customer, spec.peak_bps)
    return _context(found, form, spec, now) | {"needs_approval": approval}


def change_feasibility_context(form: ChangeForm, user: User, vll: Vll) -> dict[str, Any]:
    """Return the context for the preview of a change.

    ``change``: the effect of the change. ``diff_rows``: the old and the new value of each changed field.
    """
    now = clock.now()
    vlans = {end.side: end.outer_vlan for end in vll.ends.all()}
    found = change_feasibility_of(
        user=user, vll=vll, changes=form.changes(), now=now, expected_revision=form.revision
    )
    return _context(found.feasibility, form, found.spec, now) | {
        "change": found,
        "diff_rows": diff_rows_between(found.before, found.spec, vlans=vlans),
        "needs_approval": found.needs_approval,
    }


def _context(found: Feasibility, form: OrderForm, spec: LineSpec, now: datetime) -> dict[str, Any]:
    for refusal in found.refusals:
        form.refuse(refusal)
    return {
        "feasibility": found,
        "reasons": _each_once(form.problems()),
        "line_request": spec,
        "path": _path(found, spec, now),
    }


def _each_once(problems: Iterable[Problem]) -> list[Problem]:
    """Return one problem for each field. The field itself shows all of its errors."""
    return list({problem.html_id or problem.text: problem for problem in problems}.values())


def _path(found: Feasibility, spec: LineSpec, now: datetime) -> LinePath | None:
    """Return the path of the ordered line; None if it is unknown.

    If the line was refused, return the path that was checked and refused.
    """
    transport = found.selected.transport if found.selected else _checked_transport(found, spec)
    if transport is None or len(found.ends) < len("az"):
        return None
    try:
        frame = carried_frame(spec.svc_mtu, carried_tags=spec.carried_tags)
    except SvcMtuOutOfRange:
        return None
    routers = {side: end.port.router for side, end in found.ends.items()}
    return line_path(
        a=routers["a"],
        z=routers["z"],
        transport=transport,
        gre_key=transport.family in found.gre_keys,
        frame=frame,
        now=now,
    )


def _checked_transport(found: Feasibility, spec: LineSpec) -> Transport | None:
    if spec.transport != AUTO:
        return Transport(spec.transport)
    # Choose the transport with the largest MTU, because the refusal is about that transport.
    carrying = [option for option in found.options if option.largest_svc_mtu is not None]
    best = max(carrying, key=lambda option: option.largest_svc_mtu or 0, default=None)
    return best.transport if best else None
