"""The form to change a line: the order form, filled with the values that were ordered for the line."""

from typing import Any

from django.http import QueryDict

from portal.accounts.models import User
from portal.core.network.vlan_tags import Tagging
from portal.core.quantities import whole_number
from portal.vll.line_spec import ANY, END, LINE, EndSpec
from portal.vll.models import Vll
from portal.web.fields.base import OUTDATED, digest, it_is_now
from portal.web.lines.bandwidth_form import approval_help
from portal.web.orders.order_form import OrderForm, end_initial, line_initial, unjudged


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
        ends = {f"{end.side}_end": end_initial(end) for end in vll.ends.all()}
        initial = {**ends, "line": line_initial(vll)} if written is None else unjudged(written)
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

    def changes(self) -> dict[str, Any]:
        """Return all values of the form, changed or not. The operation finds the differences."""
        spec, description = self.spec(), self._description()
        line = {each.name: getattr(spec, each.name) for each in LINE if each.name != "description"}
        ends = {f"{side}_end": self._members(side, end) for side, end in spec.ends.items()}
        return line | ends | ({} if description is None else {"description": description})

    def _members(self, side: str, end: EndSpec) -> dict[str, Any]:
        """Return the values of an end in the form.

        If the portal chose the current VLAN, and the user changes neither port nor VLAN, the VLAN is
        requested as "any". The VLAN then remains the portal's choice.
        """
        members = {each.name: getattr(end, each.name) for each in END}
        now = self._now[side]
        if now.requested_outer_vlan is None and (end.port, end.outer_vlan) == (now.port_id, now.outer_vlan):
            members["outer_vlan"] = None if end.tagging == Tagging.UNTAGGED else ANY
        return members
