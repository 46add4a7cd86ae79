"""The form to change a line: the order form, filled with the values that were ordered for the line."""

from typing import Any

from django.http import QueryDict

from portal.accounts.models import User
from portal.core.vlan_tags import Tagging
from portal.core.whole_number import whole_number
from portal.vll.models import Vll, VllEnd
from portal.vll.operations import Changes, EndRequest
from portal.web.lines.bandwidth_form import approval_help, rate_initial
from portal.web.orders.order_form import OrderForm, unjudged
from portal.web.page.versioned_save import OUTDATED, digest, it_is_now


class ChangeForm(OrderForm):
    """The form to change one line.

    ``revision``: the revision of the line when the form was opened. If the line has another revision when the
    form is submitted, the change is refused. ``described``: a digest of the description when the form was
    opened. The digest is needed because a new description does not increase the revision. ``written``: the
    values that the user had entered before searching for a port.
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
        """Return whether the form changes a description that somebody else has changed since it was opened.

        The form must be valid.
        """
        renames = self._description() not in (None, vll.description)
        return renames and self.described != digest(vll.description)

    def refuse_as_outdated(self, vll: Vll) -> None:
        """Add an error with the current description of the line to the form.

        If the user submits the form again, the description is overwritten.
        """
        self.line.add_error(None, OUTDATED)
        self.line.add_error("description", it_is_now(vll.description))
        self.described = digest(vll.description)

    def _description(self) -> str | None:
        """Return the new description. Return None if the user has not changed it, so that the current
        description is kept.
        """
        written: str = self.line.cleaned_data["description"]
        return None if digest(written) == self.described else written

    def changes(self) -> Changes:
        """Return all values of the form, changed or not. The operation finds the differences."""
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
        """Return the values of an end in the form.

        If the portal chose the current VLAN, and the user changes neither port nor VLAN, the VLAN is
        requested as "any". The VLAN then remains the portal's choice.
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
    """Return the initial values of an end, with its current VLAN.

    The VLAN is shown even if the portal chose it, because the customer's equipment uses it.
    """
    return {
        "port": end.port_id,
        "tagging": end.tagging,
        "outer_vlan": end.outer_vlan,
        "inner_vlan": end.inner_vlan,
        "more_tags": not end.exact_match,
    }
