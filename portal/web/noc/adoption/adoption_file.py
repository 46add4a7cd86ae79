"""Read from a file which found lines to adopt. The file is the portal's CSV or the YAML of vppcfg."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from portal.core.errors import DomainError
from portal.core.quantities import whole_rate, whole_size
from portal.inventory.found_lines import FoundLine, circuits_at, found_circuits, found_lines
from portal.netbox_sync.l2vpn_proposals import L2vpnProposals
from portal.uploads.table import TableRow, read_table
from portal.uploads.vppcfg_file import vppcfg_descriptions
from portal.vll.adoption_differences import FoundPorts
from portal.vll.operations.adopt_line import MOST_ADOPTIONS
from portal.web.fields.numbers import shown
from portal.web.noc.adoption.adoption_forms import proposed_mtu, proposed_name, tag_of

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
