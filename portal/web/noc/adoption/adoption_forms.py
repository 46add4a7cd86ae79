"""Forms to adopt found lines, and files with their values: the CSV of the portal, the YAML of vppcfg."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.accounts.models import User
from portal.core.errors import DomainError
from portal.core.quantities import whole_rate, whole_size
from portal.inventory.found_lines import FoundLine, circuits_at, found_circuits, found_lines
from portal.netbox_sync.l2vpn_proposals import L2vpnProposals, Proposal
from portal.uploads.csv_reader import TableRow, read_table
from portal.uploads.vppcfg_file import vppcfg_descriptions
from portal.vll.operations.adopt_line import MOST_ADOPTIONS, Adoption, FoundPorts
from portal.web.fields.base import TablerForm
from portal.web.fields.numbers import SizeField, shown
from portal.web.fields.suggestions import AutocompleteField
from portal.web.lines.bandwidth_form import BandwidthForm, name_after
from portal.web.noc.inventory.inventory_forms import MbitField

_USUAL_MTU, _LARGEST = 1500, 2**31


def _customer_field(**more: Any) -> AutocompleteField:
    return AutocompleteField(label=gettext_lazy("Customer"), of="customers", required=False, **more)


def _mtu_field(**more: Any) -> SizeField:
    return SizeField(
        label=gettext_lazy("Largest packet (MTU)"),
        min_value=0,
        max_value=_LARGEST,
        widget=forms.TextInput(attrs={"inputmode": "numeric"}),
        **more,
    )


def _name_field() -> forms.CharField:
    return forms.CharField(label=gettext_lazy("Name or reference"), max_length=100, required=False)


class AdoptionForm(BandwidthForm):
    """The form to adopt one line.

    Its ``cleaned_data`` has ``customer``, ``description``, ``svc_mtu`` (bytes) and ``cir_bps`` (bit/s).
    """

    customer = _customer_field(
        help_text=gettext_lazy(
            "Ports without a customer, or not in the portal yet, are assigned to this customer"
        )
    )
    description = _name_field()
    svc_mtu = _mtu_field(error_messages={"required": gettext_lazy("Enter the size of the largest packet.")})

    def __init__(
        self, data: Any, *, line: FoundLine, customer: str, user: User, netbox: Proposal | None = None
    ) -> None:
        name = proposed_name(line, netbox) or name_after(
            [str(end.router.site) for end in line.ends], user=user
        )
        initial = {"customer": customer, "description": name, "svc_mtu": proposed_mtu(line)}
        super().__init__(data, initial=initial)
        self.fields["cir"].widget.attrs["autofocus"] = True


class AdoptionsForm(TablerForm):
    """The common values of several lines. The row of a line may have other values."""

    customer = _customer_field(
        help_text=gettext_lazy("Used if a line’s ports have no customer, or are not in the portal yet")
    )
    svc_mtu = _mtu_field(required=False)
    cir_bps = MbitField(label=gettext_lazy("Bandwidth (Mbit/s)"), required=False)


class AdoptionRowForm(TablerForm):
    """The row of one of several lines to adopt. If a field is empty, the common value applies."""

    take = forms.BooleanField(label=gettext_lazy("Take over"), required=False, initial=True)
    customer = _customer_field()
    description = _name_field()
    svc_mtu = _mtu_field(required=False)
    cir_bps = MbitField(label=gettext_lazy("Bandwidth (Mbit/s)"), required=False)

    def __init__(self, data: Any, *, line: FoundLine, initial: dict[str, Any] | None = None) -> None:
        super().__init__(data, prefix=str(line.id), initial=initial or {})
        self._line = line
        # Use the suggestions of the common field, because a hundred separate lists would be too long.
        self.fields["customer"].widget = forms.TextInput(
            attrs={"class": "form-control", "list": "id_customer-names", "maxlength": "100"}
        )
        for each in self.fields.values():
            each.widget.attrs["aria-label"] = f"{each.label}: {where(line)}"

    @property
    def columns(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name != "take"]

    def adoption(self, for_all: AdoptionsForm) -> Adoption | None:
        """Return the requested adoption; None if the line is not selected, or a value is missing or invalid.

        Errors about missing values are added to the form. ``for_all``: the form with the common values.
        """
        if not (self.is_valid() and for_all.is_valid() and self.cleaned_data["take"]):
            return None
        values = {
            name: common if self.cleaned_data[name] is None else self.cleaned_data[name]
            for name, common in for_all.cleaned_data.items()
        }
        if values["svc_mtu"] is None:
            self.add_error("svc_mtu", _("Enter the size of the largest packet, here or for all."))
        if values["cir_bps"] is None:
            self.add_error("cir_bps", _("Enter a bandwidth, here or for all."))
        if self.errors:
            return None
        return Adoption(found_line=self._line.id, description=self.cleaned_data["description"], **values)


def where(line: FoundLine) -> str:
    return " – ".join(f"{end.router}:{end.interface}" for end in line.ends)


def tag_of(line: FoundLine) -> str:
    """Return the description of the line on a router, from the first end with a description; otherwise ""."""
    return next((end.tag for end in line.ends if end.tag), "")


def proposed_name(line: FoundLine, netbox: Proposal | None) -> str:
    """Return the name of the L2VPN in NetBox. If there is no L2VPN, return the description on a router."""
    return netbox.l2vpn if netbox else tag_of(line)


def proposed_mtu(line: FoundLine) -> int:
    """Return the smallest IP MTU that the ends' interfaces report, but at most 1500."""
    return min([_USUAL_MTU, *(end.ip_mtu for end in line.ends if end.ip_mtu)])


# The first two columns identify the line by one of its ends. The last four columns are its new values.
COLUMNS = (
    "router",
    "interface",
    "far_router",
    "far_interface",
    "transport",
    "key",
    "tag",
    "customer",
    "description",
    "svc_mtu",
    "cir_bps",
)
_MBIT = 10**6


@dataclass(slots=True)
class AdoptionFile:
    """The content of a file: each found line with the values of its form row, and problems for the user."""

    lines: list[tuple[FoundLine, dict[str, str]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def of_csv(data: bytes) -> AdoptionFile:
    """Read the portal's CSV. Raises one of portal.uploads.errors."""
    rows = read_table(data, columns=COLUMNS, required=("router", "interface"), max_rows=MOST_ADOPTIONS)
    result, seen = AdoptionFile(), set[int]()
    lines = _lines_at(_place(row) for row in rows)
    for row in rows:
        router, interface = _place(row)
        line = lines.get((router, interface))
        where = {"line": row.line, "router": router, "interface": interface}
        if line is None:
            result.problems.append(
                _("Line {line}: no line that can be taken over has an end at {router}, {interface}.").format(
                    **where
                )
            )
        elif line.id in seen:
            result.problems.append(
                _("Line {line}: the line at {router}, {interface} is listed twice.").format(**where)
            )
        else:
            seen.add(line.id)
            result.lines.append((line, _fields(row)))
    return result


def of_vppcfg(data: bytes, *, router: str) -> AdoptionFile:
    """Read the YAML of vppcfg for ``router``.

    Return the found lines with an end on an interface that has a description in the file. At most
    MOST_ADOPTIONS lines are returned.
    """
    named = vppcfg_descriptions(data)
    lines = _lines_at((router, interface) for interface in named)
    result, seen = AdoptionFile(), set[int]()
    for interface, description in named.items():
        line = lines.get((router, interface))
        if line is not None and line.id not in seen and len(seen) < MOST_ADOPTIONS:
            seen.add(line.id)
            result.lines.append((line, {"description": description}))
    if not result.lines:
        result.problems.append(
            _("This file describes no line on {router} that can be taken over.").format(router=router)
        )
    return result


def csv_rows(lines: Sequence[FoundLine]) -> Iterator[list[object]]:
    """Yield the rows of the portal's CSV: the header, and a row for each line with its proposed values."""
    ports, netbox = FoundPorts(lines), L2vpnProposals(lines)
    yield list(COLUMNS)
    for line in lines:
        a, z, proposal = line.a, line.z, netbox.of(line)
        assert a and z and line.transport  # noqa: S101, PT018 - or it could not be taken over
        yield [
            a.router.name,
            a.interface,
            z.router.name,
            z.interface,
            line.transport.value,
            "" if line.key is None else line.key,
            tag_of(line),
            ports.customer(line) or (proposal.customer if proposal else ""),
            proposed_name(line, proposal),
            proposed_mtu(line),
            "",
        ]


def _lines_at(places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], FoundLine]:
    """Return the lines that can be adopted, by (router, interface) of each of their ends."""
    found = found_lines(circuits_at(found_circuits(), set(places)))
    return {
        (end.router.name, end.interface): line for line in found if line.may_be_adopted for end in line.ends
    }


def _place(row: TableRow) -> tuple[str, str]:
    return row.cells["router"], row.cells["interface"]


def _fields(row: TableRow) -> dict[str, Any]:
    """Return the values of a form row. Ambiguous numbers stay unchanged, so that the form refuses them."""
    fields = {name: row.cells[name] for name in ("customer", "description", "svc_mtu", "cir_bps")}
    with suppress(DomainError):
        fields["svc_mtu"] = str(whole_size(fields["svc_mtu"]))
    try:
        fields["cir_bps"] = _mbit(whole_rate(fields["cir_bps"]))
    except DomainError:
        if fields["cir_bps"][-1:].isdigit():
            # In the form, a number without a unit is in Mbit/s.
            fields["cir_bps"] += " bit/s"
    return fields


def _mbit(bps: int) -> str:
    """Return a rate in bit/s as the form shows it, in Mbit/s."""
    return shown(f"{Decimal(bps) / _MBIT:f}")
