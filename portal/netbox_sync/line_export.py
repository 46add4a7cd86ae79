"""The export of lines to NetBox: each line is an L2VPN and two virtual interfaces.

The export reads NetBox's current state, and writes only differences. The portal writes a field again only
when the portal's own value has changed. If NetBox has another value than the last written value, a user has
edited the field in NetBox, and the edit is kept. A worker may be killed after it has created an object in
NetBox and before it has recorded that. The next worker then finds the object by its custom field, so that no
object is created twice.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from time import monotonic
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from portal.core.http import absolute_url
from portal.core.network.vlan_tags import Tagging
from portal.netbox_sync.client import WITH_L2VPN_STATUS, Client, Configuration, Row
from portal.netbox_sync.errors import CannotExport, NetboxRefused
from portal.netbox_sync.import_mapping import CUSTOMER, PORT, ROUTER
from portal.netbox_sync.models import ExportedVll, NetboxObject
from portal.netbox_sync.netbox_reader import Progress
from portal.vll.models import Vll, VllEnd
from portal.vll.states import TERMINAL_LIFECYCLES, Lifecycle

# The custom fields of L2VPNs and interfaces that identify the line and link to its page.
ID_FIELD, URL_FIELD = "longline_id", "longline_url"
# The type of L2VPNs: a pseudowire (RFC 4664), one of the few in NetBox with exactly two terminations.
TYPE = "vpws"
_STATUS = {
    Lifecycle.PENDING_ACTIVE: "planned",
    Lifecycle.ACTIVE: "active",
    # A suspended line keeps its resources and can be resumed unchanged, so NetBox shows it as active.
    Lifecycle.SUSPENDED: "active",
    Lifecycle.PENDING_TERMINATE: "decommissioning",
    Lifecycle.TERMINATED: "decommissioning",
    Lifecycle.CANCELLED: "decommissioning",
}
_NAME = 100


@dataclass(frozen=True, slots=True)
class End:
    """A virtual interface of an end. ``device`` and ``parent`` (the port's interface) are NetBox's ids."""

    device: int
    parent: int
    name: str


def first_values(vll: Vll) -> dict[str, Any]:
    """Return the values that are written only when the L2VPN is created. Users may change them in NetBox."""
    # Names must be unique in NetBox. 48 bits of the id distinguish 100,000 lines with the same description.
    short = str(vll.pk)[:13]
    return {
        "name": f"{vll.description or 'VLL'} ({short})"[-_NAME:],
        "slug": f"longline-{vll.pk}",
        "type": TYPE,
        "custom_fields": custom_fields(vll),
    }


def custom_fields(vll: Vll) -> dict[str, str]:
    """Return the custom fields that identify the line's objects and link to the line."""
    return {ID_FIELD: str(vll.pk), URL_FIELD: absolute_url(f"/vlls/{vll.pk}/")}


def l2vpn_fields(vll: Vll, tenant: int | None, version: tuple[int, int]) -> dict[str, Any]:
    """Return the values that the portal keeps up to date: identifier, tenant, and status.

    The identifier is the VNI or the GRE key. It is None for a line without a VNI and without a GRE key.
    ``version``: NetBox's release. L2VPNs have a status from 4.3 on.
    """
    found: dict[str, Any] = {"identifier": vll.gre_key if vll.vni is None else vll.vni, "tenant": tenant}
    if version >= WITH_L2VPN_STATUS:
        found["status"] = _STATUS[Lifecycle(vll.lifecycle)]
    return found


def interface_name(end: VllEnd) -> str:
    """Return the name of an end's interface in NetBox: port, dot and VLANs, as on the router.

    For a whole port, the name is the port followed by ``.0``.
    """
    if end.tagging == Tagging.UNTAGGED:
        vlans = "0"
    elif end.inner_vlan is None:
        vlans = str(end.outer_vlan)
    else:
        vlans = f"{end.outer_vlan}.{end.inner_vlan}"
        # Another line may have the same two VLANs with another TPID (0x88a8 instead of 0x8100).
        vlans += "ad" if end.tagging == Tagging.DOT1AD else ""
    return f"{end.port.interface}.{vlans}"


AT_ONCE = 40
# During a long export, the interval (s) between two checks for newly due lines. It equals the interval of
# exports in Celery's beat. Each check reads all lines (130 ms of PostgreSQL's time with 20,000 lines).
CHECK_EVERY_S = 15.0
_INTERFACES, _L2VPNS, _TERMINATIONS = "dcim.interfaces", "vpn.l2vpns", "vpn.l2vpn-terminations"


def lines_due() -> QuerySet[Vll]:
    """Return the lines whose current state has not been exported.

    These lines include lines that ended before their first export.
    """
    stale = ~Q(netbox__revision=F("revision")) | ~Q(netbox__lifecycle=F("lifecycle"))
    return Vll.objects.filter(Q(netbox__isnull=True) | stale)


def lines_to_check() -> QuerySet[Vll]:
    """Return the lines for a full check: those that have not ended, are due, or could not be exported."""
    still_to_do = Q(pk__in=lines_due().values("pk")) | Q(netbox__error__isnull=False)
    return Vll.objects.filter(~Q(lifecycle__in=TERMINAL_LIFECYCLES) | still_to_do)


class Exporter:
    """Writes lines to NetBox in small batches, and records each line as soon as it is written."""

    def __init__(self, client: Client, configuration: Configuration, *, now: datetime) -> None:
        self._client, self._configuration, self._now = client, configuration, now
        self._fields_are_there = False

    def export(self, lines: QuerySet[Vll], progress: Progress) -> None:
        """Export ``lines``, and lines that become due during the export.

        A new order therefore need not wait until the whole network is exported. Up to half of a batch
        consists of lines that have become due, newest first. The rest of the batch comes from ``lines``. An
        error that concerns a single line is recorded, and the export continues. Raises NetboxError for other
        errors.
        """
        waiting = dict.fromkeys(lines.order_by("pk").values_list("pk", flat=True))
        done, total, next_check = 0, len(waiting), monotonic()
        while waiting:
            ids: set[UUID] = set()
            if monotonic() >= next_check:
                next_check = monotonic() + CHECK_EVERY_S
                ids.update(lines_due().order_by("-created_at").values_list("pk", flat=True)[: AT_ONCE // 2])
            ids.update(islice(waiting, AT_ONCE - len(ids)))
            total += len(ids - waiting.keys())
            for each in ids:
                waiting.pop(each, None)
            some = Vll.objects.filter(pk__in=ids).order_by("pk")
            for line in self._exported(list(some.select_related("netbox").prefetch_related("ends__port"))):
                line.save()
                done += 1
                progress("lines", done, total)

    def _exported(self, lines: list[Vll]) -> Iterator[ExportedVll]:
        self._custom_fields_exist()
        there = self._l2vpns(lines)
        terminations = self._terminations(row["id"] for rows in there.values() for row in rows)
        for line in lines:
            noted = getattr(line, "netbox", None) or ExportedVll(vll=line)
            try:
                _Line(self._client, self._configuration, line, noted).write(
                    there.get(str(line.pk), []), terminations
                )
            except (CannotExport, NetboxRefused) as error:
                noted.error = error.record
            else:
                noted.error, noted.done_at = None, self._now
            # Record failed attempts too: the line is no longer due. The next full check tries it again.
            noted.revision, noted.lifecycle = line.revision, line.lifecycle
            yield noted

    def _custom_fields_exist(self) -> None:
        """Create missing custom fields in NetBox. Raises NetboxError if the token has no permission."""
        if self._fields_are_there:
            return
        wanted = {
            ID_FIELD: ("text", "Longline id", "exact"),
            URL_FIELD: ("url", "Longline", "disabled"),
        }
        both = ["dcim.interface", "vpn.l2vpn"]
        there = self._client.rows(
            "extras.custom-fields", fields=("id", "name", "object_types"), name=list(wanted)
        )
        found = {row["name"]: row for row in there if row["name"] in wanted}
        for name, (kind, label, logic) in wanted.items():
            if name not in found:
                values = {"name": name, "type": kind, "label": label, "object_types": both}
                self._client.create(
                    "extras.custom-fields", {**values, "filter_logic": logic, "ui_editable": "no"}
                )
            elif missing := set(both) - set(found[name]["object_types"]):
                types = sorted(missing | set(found[name]["object_types"]))
                self._client.change("extras.custom-fields", found[name]["id"], {"object_types": types})
        self._fields_are_there = True

    def _l2vpns(self, lines: list[Vll]) -> dict[str, list[Row]]:
        """Return the L2VPNs by the line's id. NetBox ignores unknown filters, so filter them here too."""
        ids = {str(line.pk) for line in lines}
        fields = ["id", "identifier", "tenant", "custom_fields"]
        if self._client.version >= (4, 3):
            fields.append("status")
        found: dict[str, list[Row]] = {}
        for row in self._client.rows(_L2VPNS, fields=fields, **{f"cf_{ID_FIELD}": sorted(ids)}):
            line = (row.get("custom_fields") or {}).get(ID_FIELD)
            if line in ids:
                found.setdefault(line, []).append(row)
        return found

    def _terminations(self, ids: Iterable[int]) -> dict[int, list[Row]]:
        l2vpns, found = sorted(ids), dict[int, list[Row]]()
        if not l2vpns:
            return found
        fields = ("id", "l2vpn", "assigned_object_type", "assigned_object_id")
        for row in self._client.rows(_TERMINATIONS, fields=fields, l2vpn_id=l2vpns):
            found.setdefault(row["l2vpn"]["id"], []).append(row)
        return found


class _Line:
    def __init__(self, client: Client, configuration: Configuration, vll: Vll, noted: ExportedVll) -> None:
        self._client, self._configuration = client, configuration
        self._vll, self._noted = vll, noted

    def write(self, there: list[Row], terminations: dict[int, list[Row]]) -> None:
        """Write the line's L2VPN, interfaces and terminations, or remove them if the line has ended.

        ``there``: the L2VPNs with the line's id. ``terminations``: those by L2VPN. Raises CannotExport,
        NetboxError.
        """
        if len(there) > 1:
            raise CannotExport("l2vpn_twice", ids=", ".join(str(row["id"]) for row in there))
        row = there[0] if there else None
        if self._vll.lifecycle in TERMINAL_LIFECYCLES:
            self._end(row, terminations)
            return
        ends = self._wanted_ends()
        row_id = self._l2vpn(row)
        self._ends(row_id, ends, terminations.get(row_id, []))

    def _l2vpn(self, row: Row | None) -> int:
        wanted = l2vpn_fields(self._vll, self._tenant(), self._client.version)
        if row is None:
            values = {**first_values(self._vll), **wanted}
            row_id = int(self._client.create(_L2VPNS, values)["id"])
        else:
            row_id = row["id"]
            self._update(row, wanted)
        self._note(l2vpn=row_id, fields=wanted)
        return row_id

    def _update(self, row: Row, wanted: dict[str, Any]) -> None:
        current = {name: _plain(row.get(name)) for name in wanted}
        # Without a record of the last written values, a difference cannot be recognized as a user's edit.
        written = self._noted.written.get("fields", {})
        changed = {
            name: value
            for name, value in wanted.items()
            if current[name] != value and (name not in written or written[name] != value)
        }
        if changed:
            self._client.change(_L2VPNS, row["id"], changed)

    def _wanted_ends(self) -> dict[str, End]:
        found = {}
        for end in sorted(self._vll.ends.all(), key=lambda end: end.side):
            parent, device = _object_of(PORT, end.port_id), _object_of(ROUTER, end.port.router_id)
            if device is not None and parent is None:
                parent = self._interface_id(device, end.port.interface)
            if device is None or parent is None:
                raise CannotExport("port_not_there", port=str(end.port))
            found[end.side] = End(device, parent, interface_name(end))
        return found

    def _ends(self, l2vpn_id: int, ends: dict[str, End], terminations: list[Row]) -> None:
        """Terminate the L2VPN on each end. Remove old terminations first: NetBox allows only two."""
        noted: dict[str, Any] = self._noted.written.get("ends", {})
        on = {
            row["assigned_object_id"]: row["id"]
            for row in terminations
            if row["assigned_object_type"] == "dcim.interface"
        }
        settled = {
            side: noted[side]["interface"]
            for side, end in ends.items()
            if noted.get(side, {}).get("end") == [end.device, end.parent, end.name]
            and noted[side]["interface"] in on
        }
        if len(settled) == len(ends) == len(terminations):
            return
        interfaces = dict(settled)
        for side in sorted(ends.keys() - settled.keys()):
            interfaces[side] = self._interface(ends[side], l2vpn_id)
        stale = [row for row in terminations if row["assigned_object_id"] not in interfaces.values()]
        self._client.remove(_TERMINATIONS, [row["id"] for row in stale])
        missing = [each for each in interfaces.values() if each not in on]
        if missing:
            self._client.create_all(
                _TERMINATIONS,
                [
                    {
                        "l2vpn": l2vpn_id,
                        "assigned_object_type": "dcim.interface",
                        "assigned_object_id": interface,
                    }
                    for interface in missing
                ],
            )
        self._interfaces_remove(but=set(interfaces.values()))
        now_noted = {
            side: {"interface": interfaces[side], "end": [end.device, end.parent, end.name]}
            for side, end in ends.items()
        }
        self._note(ends=now_noted)

    def _interface(self, end: End, l2vpn_id: int) -> int:
        """Return the id of the end's interface, after creating it if needed. Raises CannotExport."""
        fields = ("id", "name", "parent", "type", "l2vpn_termination", "custom_fields")
        for row in self._client.rows(_INTERFACES, fields=fields, device_id=[end.device], name=[end.name]):
            if row["name"] != end.name:
                continue
            other = (row.get("l2vpn_termination") or {}).get("l2vpn") or {}
            if other and other.get("id") != l2vpn_id:
                raise CannotExport("interface_taken", interface=end.name, by=str(other.get("display", "")))
            owner = (row.get("custom_fields") or {}).get(ID_FIELD)
            if owner not in (None, "", str(self._vll.pk)):
                raise CannotExport("interface_taken", interface=end.name, by=str(owner))
            return int(row["id"])
        values = {
            "device": end.device,
            "name": end.name,
            "type": "virtual",
            "parent": end.parent,
            "custom_fields": custom_fields(self._vll),
        }
        return int(self._client.create(_INTERFACES, values)["id"])

    def _interfaces_remove(self, *, but: set[int]) -> None:
        """Remove the interfaces that the portal created for this line, except those in ``but``."""
        rows = self._client.rows(
            _INTERFACES,
            fields=("id", "custom_fields"),
            **{f"cf_{ID_FIELD}": [str(self._vll.pk)]},
        )
        ours = [
            row["id"]
            for row in rows
            if (row.get("custom_fields") or {}).get(ID_FIELD) == str(self._vll.pk) and row["id"] not in but
        ]
        self._client.remove(_INTERFACES, ours)

    def _end(self, row: Row | None, terminations: dict[int, list[Row]]) -> None:
        """Remove the line's terminations and interfaces from NetBox, and its L2VPN.

        If the setting NETBOX_AT_END is not ``remove``, the L2VPN is kept and gets the status of an ended
        line. This needs NetBox 4.3, because L2VPNs have no status in older releases.
        """
        if row is None:
            if self._noted.written:
                self._interfaces_remove(but=set())
            return
        stays = self._configuration.at_end != "remove" and "status" in row
        self._client.remove(_TERMINATIONS, [each["id"] for each in terminations.get(row["id"], [])])
        self._interfaces_remove(but=set())
        if stays:
            wanted = l2vpn_fields(self._vll, self._tenant(), self._client.version)
            self._update(row, {"status": wanted["status"]})
        else:
            self._client.remove(_L2VPNS, [row["id"]])

    def _interface_id(self, device: int, name: str) -> int | None:
        """Return the NetBox id of an interface, for ports that a user created in the portal; or None."""
        rows = self._client.rows(_INTERFACES, fields=("id", "name"), device_id=[device], name=[name])
        return next((row["id"] for row in rows if row["name"] == name), None)

    def _tenant(self) -> int | None:
        return _object_of(CUSTOMER, self._vll.customer_id)

    def _note(self, **written: Any) -> None:
        """Record written values at once. Otherwise, after a crash, they would look like a user's edit."""
        self._noted.written = {**self._noted.written, **written}
        self._noted.save()


def _object_of(kind: str, row_id: int) -> int | None:
    found = NetboxObject.objects.filter(kind=kind, row_id=row_id).values_list("netbox_id", flat=True).first()
    return None if found is None else int(found)


def _plain(value: Any) -> Any:
    """Return the value of a choice field or the id of a nested object. Return other values unchanged."""
    if isinstance(value, dict):
        return value["value"] if "value" in value else value.get("id")
    return value
