"""The order form. Fields have the names of the REST API, so that a refusal can be added to its field."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from django import forms
from django.http import QueryDict
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy as _

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.network.encapsulations import Transport
from portal.core.network.vlan_tags import MAX_VLAN, Tagging
from portal.core.quantities import row_id, uuid_of, whole_number
from portal.inventory.models import Port
from portal.vll import queries
from portal.vll.errors import ReservationUnknown, SimilarOrder, VlanCoolingOff
from portal.vll.line_revision import AllocatedEnd
from portal.vll.line_spec import ANY, AUTO, END, LINE, EndSpec, LineSpec, Property
from portal.vll.models import Reservation, Vll, VllEnd
from portal.vll.models.order import MAX_RENEWALS
from portal.web.fields.base import LookupField, TablerForm
from portal.web.fields.numbers import OuterVlanField, property_field
from portal.web.lines.bandwidth_form import (
    MBIT,
    UNITS,
    BandwidthForm,
    approval_help,
    name_after,
    rate_initial,
)
from portal.web.orders.port_choice import PortField, orderable_ports, port_offer

TAGGINGS = [
    (Tagging.DOT1Q, _("One VLAN")),
    (Tagging.UNTAGGED, _("The whole port")),
    (Tagging.QINQ, _("Two VLANs (QinQ)")),
    (Tagging.DOT1AD, _("Two VLANs (802.1ad)")),
]
TRANSPORTS = [
    (AUTO, _("Automatic")),
    (Transport.L2XC, _("Local cross-connect (L2XC)")),
    (Transport.VXLAN4, _("VXLAN over IPv4")),
    (Transport.VXLAN6, _("VXLAN over IPv6")),
    (Transport.GENEVE4, _("GENEVE over IPv4")),
    (Transport.GENEVE6, _("GENEVE over IPv6")),
    (Transport.GRE4, _("GRE over IPv4")),
    (Transport.GRE6, _("GRE over IPv6")),
]


# A line like another line gets its own name, and bursts that the portal chooses.
_NOT_COPIED = ("description", "cbs_bytes", "ebs_bytes")
# Fields whose names in the form differ from their names in the REST API.
_FIELDS = {
    "cir_bps": "cir",
    "eir_bps": "eir",
    "exact_match": "more_tags",
    "a_end": "port",
    "z_end": "port",
}
# What the form needs for a property in addition to its declaration.
_MORE: dict[str, dict[str, Any]] = {
    "port": {"kind": PortField, "coerce": int},
    "tagging": {"choices": TAGGINGS},
    "outer_vlan": {"kind": OuterVlanField},
    "transport": {"choices": TRANSPORTS},
}


def _fields_of(properties: Iterable[Property]) -> dict[str, forms.Field]:
    return {
        _FIELDS.get(each.name, each.name): property_field(each, **_MORE.get(each.name, {}))
        for each in properties
    }


class EndForm(TablerForm):
    """The part of the form for one end of a line: the port, and the frames of the port."""

    # Not shown if the select contains all ports.
    search = LookupField(label=_("Find a port"), required=False, max_length=100)

    def __init__(self, *args: Any, user: User, owner: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owner = owner
        search = str(self["search"].value() or "").replace("\0", "").strip()[:100]
        choices, more = port_offer(user, search=search, chosen=self["port"].value() or "", owner=owner)
        port: PortField = self.fields["port"]  # type: ignore[assignment]
        port.choices, port.ports = choices, orderable_ports(user)
        self.has_more_ports = more
        self.has_ports = bool(choices) or more

    def sites_of(self, ports: list[int]) -> dict[int, str]:
        """Return the name of the site for each of these ports on which the user may order."""
        port: PortField = self.fields["port"]  # type: ignore[assignment]
        return dict(port.ports.filter(pk__in=ports).values_list("pk", "router__site__name"))

    def spec(self) -> EndSpec:
        """Return the ordered end. The form must be valid."""
        end = self.cleaned_data
        # Without JavaScript, the proposed VLAN "any" remains in the form even for a whole port.
        nothing_meant = end["tagging"] == Tagging.UNTAGGED and end["outer_vlan"] == ANY
        return EndSpec(
            port=end["port"],
            tagging=Tagging(end["tagging"]),
            outer_vlan=None if nothing_meant else end["outer_vlan"],
            inner_vlan=end["inner_vlan"],
            exact_match=not end["more_tags"],
        )


class LineForm(BandwidthForm):
    """The part of the form for the line, without its ends."""

    rates = ("cir", "eir")
    field_order = ("cir", "cir_unit", "description", "svc_mtu", "transport", "eir", "eir_unit")

    eir_unit = forms.TypedChoiceField(
        label=_("Unit of the excess"), coerce=int, choices=UNITS, initial=MBIT, required=False
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not user.is_noc:
            mine = permissions.orderable_customers(user)
            # Computed only when it is shown. Most of these forms only process a request.
            self.fields["cir"].help_text = cast(str, SimpleLazyObject(lambda: approval_help(mine)))
        # Only the NOC can choose some values. Other users see such a field only if the line already has a
        # chosen value.
        for each in LINE:
            if each.noc_chooses and not user.is_noc and self[each.name].value() in (None, each.default):
                self.fields[each.name].widget = forms.HiddenInput()

    @property
    def flags(self) -> list[forms.BoundField]:
        """The fields of the properties that are on or off."""
        return [self[each.name] for each in LINE if each.is_flag]

    @property
    def has_optional_values(self) -> bool:
        """Whether a field in the collapsed part of the form has a value or an error."""
        fields = [self[_FIELDS.get(each.name, each.name)] for each in LINE if not each.is_required]
        plain = (None, "", "0", AUTO, False)
        return any(
            field.value() not in plain or field.errors
            for field in fields
            if field.name != "description" and not field.is_hidden
        )


EndForm.base_fields = _fields_of(END) | EndForm.base_fields
LineForm.base_fields |= _fields_of(LINE)


@dataclass(frozen=True, slots=True)
class Problem:
    """An entry of the error summary: a link to a field (``html_id``), its label, and its error.

    ``is_missing``: whether the field is empty.
    """

    html_id: str
    label: str
    text: str
    is_missing: bool = False


# Fields with these endings of their names are shown next to another field and have no place for errors.
ADJACENT = ("search", "_unit")


@dataclass(frozen=True, slots=True)
class ShownReservation:
    """A reservation for display. ``ends``: its ports and VLANs, as ends of a line that are not stored."""

    row: Reservation
    ends: list[VllEnd]
    renewals_left: int
    may_order: bool


class OrderForm:
    """The order form: the two ends and the line.

    ``owner``: if not None, the form offers only ports of the customer with this id. ``is_sent``: whether the
    user has submitted the form. ``reservation_id``: the id of the submitted reservation. ``reserved``: the
    reservation for display; None if the reservation is not open.
    """

    def __init__(
        self,
        *,
        user: User,
        data: QueryDict | None = None,
        initial: dict[str, dict[str, Any]] | None = None,
        owner: int | None = None,
    ) -> None:
        start = initial or {}
        self.a_end = EndForm(data, prefix="a_end", user=user, owner=owner, initial=start.get("a_end"))
        self.z_end = EndForm(data, prefix="z_end", user=user, owner=owner, initial=start.get("z_end"))
        self.line = LineForm(data, initial=start.get("line"), user=user)
        self.has_ports = self.a_end.has_ports
        self.needs_confirmation = False
        # The names, keyed by id, of the customer's removed lines that are in their cooling-off and still
        # reserve a VLAN of this order.
        self.lines_cooling_off: dict[str, str] = {}
        self.is_sent = data is not None and "sent" in data
        self._user = user
        self.use_reservation(uuid_of(data.get("hold", "")) if data is not None else None)

    def use_reservation(self, reservation_id: UUID | None) -> None:
        """Use this reservation for the order. None means no reservation."""
        self.reservation_id, self.reserved = reservation_id, open_reservation(self._user, reservation_id)

    def is_valid(self) -> bool:
        """Return whether all three parts are valid. All parts are validated, so that all errors are shown."""
        return all([self.a_end.is_valid(), self.z_end.is_valid(), self.line.is_valid()])

    def spec(self) -> LineSpec:
        """Return the ordered line. The form must be valid."""
        line = {each.name: self.line.cleaned_data[each.name] for each in LINE}
        return LineSpec(a_end=self.a_end.spec(), z_end=self.z_end.spec(), **line)

    def proposed_name(self) -> str:
        """Return a name made of the sites of both ends. The form must be valid."""
        ports = [form.cleaned_data["port"] for form in (self.a_end, self.z_end)]
        sites = self.a_end.sites_of(ports)
        return name_after([sites[port] for port in ports], user=self._user)

    def refuse(self, error: DomainError) -> None:
        """Add an error of the operation to the field that it names.

        If the form does not show this field to the user, the error is added to the whole end or line.
        """
        if isinstance(error, VlanCoolingOff) and error.until is not None:
            self.lines_cooling_off.setdefault(error.line, error.description or error.line)
        if isinstance(error, ReservationUnknown):
            self.use_reservation(None)
        self.needs_confirmation = isinstance(error, SimilarOrder)
        part, _dot, name = error.field.rpartition(".")
        form: forms.Form = {"a_end": self.a_end, "z_end": self.z_end}.get(part or name, self.line)
        field = _FIELDS.get(name, name)
        is_shown = field in form.fields and not form[field].is_hidden
        form.add_error(field if is_shown else None, error.sentence)

    def written_fields(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the HTML id of each visible field, and its errors.

        Errors of empty fields are left out until the user submits the form.
        """
        for form in (self.a_end, self.z_end, self.line):
            for field in form.visible_fields():
                if field.name.endswith(ADJACENT):
                    continue
                mistakes = [str(each) for each in field.errors] if field.value() or self.is_sent else []
                yield field.auto_id, mistakes

    def problems(self) -> Iterator[Problem]:
        """Yield all errors of the form, in the order of the page."""
        for form, where in ((self.a_end, _("A end")), (self.z_end, _("Z end")), (self.line, "")):
            for name, errors in form.errors.items():
                bound = form[name] if name in form.fields and not form[name].is_hidden else None
                label = f"{where}: {bound.label}" if where and bound else (bound.label if bound else where)
                is_missing = bound is not None and bound.value() in (None, "")
                for text in errors:
                    yield Problem(bound.id_for_label if bound else "", str(label), str(text), is_missing)

    def obstacles(self) -> dict[str, list[Problem]]:
        """Return the errors of an invalid form: ``missing`` (empty fields) and ``unreadable`` (other
        errors).
        """
        problems = list(self.problems())
        return {
            "missing": [each for each in problems if each.is_missing],
            "unreadable": [each for each in problems if not each.is_missing],
        }


def unjudged(data: QueryDict) -> dict[str, dict[str, Any]]:
    """Return the values entered so far as initial values, without validation.

    If the user pressed the button that lets the portal choose the outer VLAN of an end, ``any`` in ``data``
    names this end.
    """
    parts = {"a_end": EndForm.base_fields, "z_end": EndForm.base_fields, "line": LineForm.base_fields}
    written: dict[str, dict[str, Any]] = {
        part: {
            name: data[key]
            for name in fields
            if (key := name if part == "line" else f"{part}-{name}") in data
        }
        for part, fields in parts.items()
    }
    if (end := data.get("any")) in ("a_end", "z_end"):
        written[end]["outer_vlan"] = ANY
    return written


def reservation_initial(reserved: ShownReservation) -> dict[str, dict[str, Any]]:
    """Return the initial values for an order with the ports, VLANs and bandwidth of a reservation."""
    ends = {f"{end.side}_end": end_initial(end) for end in reserved.ends}
    return {**ends, "line": rate_initial("cir", reserved.row.cir_bps)}


def like_initial(vll: Vll) -> dict[str, dict[str, Any]]:
    """Return the initial values for another line like this line.

    The VLANs are not copied, because they are in use.
    """
    ends = {f"{end.side}_end": end_initial(end) | _any_vlan(end) for end in vll.ends.all()}
    line = line_initial(vll)
    return {**ends, "line": {name: line[name] for name in line if name not in _NOT_COPIED}}


def line_initial(vll: Vll) -> dict[str, Any]:
    """Return the initial values of the fields of a LineForm: the values that were ordered for the line."""
    line = {each.name: getattr(vll, each.column) for each in LINE}
    cir, eir = line.pop("cir_bps"), line.pop("eir_bps")
    return line | rate_initial("cir", cir) | (rate_initial("eir", eir) if eir else {})


def port_initial(*, port: str, vlan: str) -> dict[str, dict[str, Any]]:
    """Return the initial values for a line from this port, with this VLAN if ``vlan`` is a number."""
    number = whole_number(vlan, most=MAX_VLAN)
    outer = {} if number is None else {"tagging": Tagging.DOT1Q, "outer_vlan": number}
    return {"a_end": {"port": row_id(port), **outer}}


def proposed_initial(user: User) -> dict[str, dict[str, Any]]:
    """Return the initial values for a customer's next line; none for NOC staff.

    If the user can order on exactly two ports, the line connects these ports. Otherwise its A end is on the
    same port as the A end of the newest line.
    """
    if user.is_noc:
        return {}
    ports = orderable_ports(user)
    first = list(
        ports.order_by("router__site__name", "router__name", "interface").values_list("pk", flat=True)[:3]
    )
    if len(first) == 2:
        return {f"{side}_end": {"port": port} for side, port in zip("az", first, strict=True)}
    last = Vll.objects.visible_to(user).order_by("-created_at", "-id")[:1]
    end = VllEnd.objects.filter(vll__in=last, side="a", port__in=ports).first()
    return {} if end is None else {"a_end": {"port": end.port_id}}


def _any_vlan(end: VllEnd) -> dict[str, str]:
    return {} if end.tagging == Tagging.UNTAGGED else {"outer_vlan": ANY}


def end_initial(end: VllEnd) -> dict[str, Any]:
    """Return the initial values of an end, with its current VLAN.

    The VLAN is shown even if the portal chose it, because the customer's equipment uses it.
    """
    values = {name: getattr(end, name) for name in ("tagging", "outer_vlan", "inner_vlan")}
    return {"port": end.port_id, "more_tags": not end.exact_match, **values}


def shown_reservation(row: Reservation, user: User) -> ShownReservation:
    """Return ``row`` for display, with its ports and the user's permission to order."""
    ports = Port.objects.select_related("router").in_bulk([row.ends[side]["port"] for side in "az"])
    return ShownReservation(
        row=row,
        ends=[
            VllEnd(side=side, port=ports[end.port], **end.columns)
            for side, end in ((side, AllocatedEnd.from_json(row.ends[side])) for side in "az")
        ],
        renewals_left=MAX_RENEWALS - row.renewals,
        may_order=permissions.may_order(user, row.customer),
    )


def open_reservation(user: User, reservation_id: UUID | None) -> ShownReservation | None:
    """Return the open reservation with this id.

    Return None if there is no open reservation with this id, or if the user may not see it.
    """
    if reservation_id is None:
        return None
    row = queries.reservations(user, now=clock.now()).filter(pk=reservation_id).first()
    return None if row is None else shown_reservation(row, user)
