"""The form that changes a line: the order's own form, filled with what was asked for."""

from typing import Any

from django.http import QueryDict

from portal.accounts.models import User
from portal.core.tagging import Tagging
from portal.vll.models import Vll, VllEnd
from portal.vll.operations import Changes, EndRequest
from portal.web.forms.order import OrderForm, rate_initial, unjudged


class ChangeForm(OrderForm):
    """``revision``: the one that the reader saw; a form that was opened before another change is refused.

    ``written``: what stands in the form while ports are looked for.
    """

    def __init__(
        self, *, user: User, vll: Vll, data: QueryDict | None = None, written: QueryDict | None = None
    ) -> None:
        initial = _initial(vll) if written is None else unjudged(written)
        super().__init__(user=user, data=data, initial=initial)
        source = data if written is None else written
        sent = source.get("revision", "") if source is not None else ""
        self.revision = int(sent) if sent.isdecimal() and len(sent) < 10 else vll.revision

    def changes(self) -> Changes:
        """Every value of the form; the operation looks which differ."""
        wanted = self.wanted()
        return Changes(
            description=wanted["description"],
            svc_mtu=wanted["svc_mtu"],
            cir_bps=wanted["cir_bps"],
            eir_bps=wanted["eir_bps"],
            bursts={name: wanted[name] for name in ("cbs_bytes", "ebs_bytes")},
            transport=wanted["transport"],
            a_end=_members(wanted["a_end"]),
            z_end=_members(wanted["z_end"]),
        )


def _members(end: EndRequest) -> dict[str, Any]:
    return {name: getattr(end, name) for name in EndRequest.__slots__}


def _initial(vll: Vll) -> dict[str, dict[str, Any]]:
    ends = {f"{end.side}_end": _end(end) for end in vll.ends.all()}
    line = {
        "description": vll.description,
        **rate_initial("cir", vll.cir_bps),
        **(rate_initial("eir", vll.eir_bps) if vll.eir_bps else {}),
        "cbs_bytes": vll.requested_cbs_bytes,
        "ebs_bytes": vll.requested_ebs_bytes,
        "svc_mtu": vll.svc_mtu,
        "transport": vll.requested_transport,
    }
    return {**ends, "line": line}


def _end(end: VllEnd) -> dict[str, Any]:
    outer: Any = end.requested_outer_vlan
    if end.tagging != Tagging.UNTAGGED and outer is None:
        outer = "any"
    return {
        "port": end.port_id,
        "tagging": end.tagging,
        "outer_vlan": outer,
        "inner_vlan": end.inner_vlan,
        "more_tags": not end.exact_match,
    }
