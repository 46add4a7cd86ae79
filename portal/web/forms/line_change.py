"""The form that changes a line: the order form, filled with the requested values of the line."""

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
    """The change of one line.

    ``revision``: the revision that the reader saw. A form opened before another change is refused.
    ``described``: the digest of the description that the reader saw, because a rename does not increase the
    revision. ``written``: the values entered so far during a port search.
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
        """Return whether this form renames a line that somebody else renamed since the form was opened.

        Needs a valid form.
        """
        renames = self._description() not in (None, vll.description)
        return renames and self.described != digest(vll.description)

    def refuse_as_outdated(self, vll: Vll) -> None:
        """Add the refusal, with the present name of the line, to the form.

        Submitted again, the form renames the line.
        """
        self.line.add_error(None, OUTDATED)
        self.line.add_error("description", it_is_now(vll.description))
        self.described = digest(vll.description)

    def _description(self) -> str | None:
        """Return the new description; None where the user left it unchanged, so the present one remains."""
        written: str = self.line.cleaned_data["description"]
        return None if digest(written) == self.described else written

    def changes(self) -> Changes:
        """Return all values of the form. The operation finds the differences."""
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
        """Return the form's values of an end.

        A VLAN that the portal chose remains the portal's choice while the end keeps its port and this VLAN.
        """
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
    """Return the end with its present VLAN.

    The customer's equipment uses that VLAN, even if the portal chose it.
    """
    return {
        "port": end.port_id,
        "tagging": end.tagging,
        "outer_vlan": end.outer_vlan,
        "inner_vlan": end.inner_vlan,
        "more_tags": not end.exact_match,
    }
