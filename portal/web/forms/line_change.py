"""The form that changes a line: the order's own form, filled with what was asked for."""

from typing import Any

from django.http import QueryDict

from portal.accounts.models import User
from portal.core.vlan_tags import Tagging
from portal.core.whole_number import whole_number
from portal.vll.models import Vll, VllEnd
from portal.vll.operations import Changes, EndRequest
from portal.web.forms.bandwidth import approval_help, rate_initial
from portal.web.forms.order import OrderForm, unjudged
from portal.web.forms.version_field import OUTDATED, digest, it_is_now


class ChangeForm(OrderForm):
    """``revision``: the one that the reader saw; a form that was opened before another change is refused.

    ``described``: the description that the reader saw, as its digest, which no revision counts.
    ``written``: what stands in the form while ports are looked for.
    """

    def __init__(
        self, *, user: User, vll: Vll, data: QueryDict | None = None, written: QueryDict | None = None
    ) -> None:
        initial = _initial(vll) if written is None else unjudged(written)
        super().__init__(user=user, data=data, initial=initial, owner=vll.customer_id)
        self._now = {end.side: end for end in vll.ends.all()}
        if not user.is_noc:
            self.line.fields["cir"].help_text = approval_help([vll.customer])
        source = data if written is None else written
        sent = source.get("revision", "") if source is not None else ""
        seen = source.get("described", "") if source is not None else ""
        self.described = seen or digest(vll.description)
        revision = whole_number(sent, most=10**9 - 1)
        self.revision = vll.revision if revision is None else revision

    def is_outdated(self, vll: Vll) -> bool:
        """Whether somebody else has renamed the line since the form was opened, which renames it too; only
        after ``is_valid``."""
        renames = self._description() not in (None, vll.description)
        return renames and self.described != digest(vll.description)

    def refuse_as_outdated(self, vll: Vll) -> None:
        """Say so, and what the line is called now; sent again as it then is, the form renames it."""
        self.line.add_error(None, OUTDATED)
        self.line.add_error("description", it_is_now(vll.description))
        self.described = digest(vll.description)

    def _description(self) -> str | None:
        """None where it was left as it was shown: it stays as it is by now."""
        written: str = self.line.cleaned_data["description"]
        return None if digest(written) == self.described else written

    def changes(self) -> Changes:
        """Every value of the form; the operation looks which differ."""
        wanted = self.wanted()
        return Changes(
            description=self._description(),
            svc_mtu=wanted["svc_mtu"],
            cir_bps=wanted["cir_bps"],
            eir_bps=wanted["eir_bps"],
            bursts={name: wanted[name] for name in ("cbs_bytes", "ebs_bytes")},
            transport=wanted["transport"],
            link_loss_forwarding=wanted["link_loss_forwarding"],
            a_end=self._members("a", wanted["a_end"]),
            z_end=self._members("z", wanted["z_end"]),
        )

    def _members(self, side: str, end: EndRequest) -> dict[str, Any]:
        """A VLAN that we chose stays ours to choose while its end stays on its port with that VLAN."""
        members = {name: getattr(end, name) for name in EndRequest.__slots__}
        now = self._now[side]
        if now.requested_outer_vlan is None and (end.port, end.outer_vlan) == (now.port_id, now.outer_vlan):
            members["outer_vlan"] = None if end.tagging == Tagging.UNTAGGED else "any"
        return members


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
        "link_loss_forwarding": vll.link_loss_forwarding,
    }
    return {**ends, "line": line}


def _end(end: VllEnd) -> dict[str, Any]:
    """With the VLAN that it has: what is plugged in there knows that one, whoever chose it."""
    return {
        "port": end.port_id,
        "tagging": end.tagging,
        "outer_vlan": end.outer_vlan,
        "inner_vlan": end.inner_vlan,
        "more_tags": not end.exact_match,
    }
