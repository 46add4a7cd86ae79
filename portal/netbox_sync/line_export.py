"""The export of lines to NetBox. It reads NetBox's current state, and writes only differences.

The portal writes a field again only when the portal's own value has changed. If NetBox has another value than
the last written value, a user has edited the field in NetBox, and the edit is kept. A worker may be killed
after it has created an object in NetBox and before it has recorded that. The next worker then finds the
object by its custom field, so that no object is created twice.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from time import monotonic
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from portal.netbox_sync import line_mapping
from portal.netbox_sync.client import Client, Row
from portal.netbox_sync.configuration import Configuration
from portal.netbox_sync.errors import CannotExport, NetboxRefused
from portal.netbox_sync.import_mapping import CUSTOMER, PORT, ROUTER
from portal.netbox_sync.models import ExportedVll, NetboxObject
from portal.netbox_sync.netbox_reader import Progress
from portal.vll.models import Vll
from portal.vll.states import TERMINAL_LIFECYCLES

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
    """Return the lines for a full check.

    These are the lines that have not ended, the lines that are due, and the lines that could not be
    exported.
    """
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
            # Record failed attempts too, so that the line is no longer due. The next full check tries it
            # again.
            noted.revision, noted.lifecycle = line.revision, line.lifecycle
            yield noted

    def _custom_fields_exist(self) -> None:
        """Create missing custom fields in NetBox. Raises NotPermitted if the token has no permission."""
        if self._fields_are_there:
            return
        wanted = {
            line_mapping.ID_FIELD: ("text", "Longline id", "exact"),
            line_mapping.URL_FIELD: ("url", "Longline", "disabled"),
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
        """Return the L2VPNs of these lines, by the line's id.

        The function filters the result itself too, because NetBox ignores unknown filters.
        """
        ids = {str(line.pk) for line in lines}
        fields = ["id", "identifier", "tenant", "custom_fields"]
        if self._client.version >= (4, 3):
            fields.append("status")
        found: dict[str, list[Row]] = {}
        for row in self._client.rows(_L2VPNS, fields=fields, **{f"cf_{line_mapping.ID_FIELD}": sorted(ids)}):
            line = (row.get("custom_fields") or {}).get(line_mapping.ID_FIELD)
            if line in ids:
                found.setdefault(line, []).append(row)
        return found

    def _terminations(self, ids: Iterable[int]) -> dict[int, list[Row]]:
        """Return the terminations of L2VPNs, by the L2VPN's id."""
        l2vpns, found = sorted(ids), dict[int, list[Row]]()
        if not l2vpns:
            return found
        fields = ("id", "l2vpn", "assigned_object_type", "assigned_object_id")
        for row in self._client.rows(_TERMINATIONS, fields=fields, l2vpn_id=l2vpns):
            found.setdefault(row["l2vpn"]["id"], []).append(row)
        return found


class _Line:
    """The export of one line."""

    def __init__(self, client: Client, configuration: Configuration, vll: Vll, noted: ExportedVll) -> None:
        self._client, self._configuration = client, configuration
        self._vll, self._noted = vll, noted

    def write(self, there: list[Row], terminations: dict[int, list[Row]]) -> None:
        """Write the line's L2VPN, interfaces and terminations, or remove them if the line has ended.

        ``there``: the L2VPNs with the line's id. ``terminations``: terminations by L2VPN. Raises CannotExport
        or NetboxError.
        """
        if len(there) > 1:
            raise CannotExport("l2vpn_twice", ids=", ".join(str(row["id"]) for row in there))
        row = there[0] if there else None
        if line_mapping.is_over(self._vll):
            self._end(row, terminations)
            return
        ends = self._wanted_ends()
        row_id = self._l2vpn(row)
        self._ends(row_id, ends, terminations.get(row_id, []))

    def _l2vpn(self, row: Row | None) -> int:
        wanted = line_mapping.fields(self._vll, self._tenant(), self._client.version)
        if row is None:
            values = {**line_mapping.first_values(self._vll, self._configuration.base_url), **wanted}
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

    def _wanted_ends(self) -> dict[str, line_mapping.End]:
        found = {}
        for end in sorted(self._vll.ends.all(), key=lambda end: end.side):
            parent, device = _object_of(PORT, end.port_id), _object_of(ROUTER, end.port.router_id)
            if device is not None and parent is None:
                parent = self._interface_id(device, end.port.interface)
            if device is None or parent is None:
                raise CannotExport("port_not_there", port=str(end.port))
            found[end.side] = line_mapping.End(device, parent, line_mapping.interface_name(end))
        return found

    def _ends(self, l2vpn_id: int, ends: dict[str, line_mapping.End], terminations: list[Row]) -> None:
        """Terminate the L2VPN on the interface of each end.

        Old terminations are removed first, because NetBox allows at most two.
        """
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

    def _interface(self, end: line_mapping.End, l2vpn_id: int) -> int:
        """Return the id of the end's interface in NetBox. Create the interface if it does not exist.

        Raises CannotExport if another L2VPN ends on the interface, or if the interface belongs to another
        line.
        """
        fields = ("id", "name", "parent", "type", "l2vpn_termination", "custom_fields")
        for row in self._client.rows(_INTERFACES, fields=fields, device_id=[end.device], name=[end.name]):
            if row["name"] != end.name:
                continue
            other = (row.get("l2vpn_termination") or {}).get("l2vpn") or {}
            if other and other.get("id") != l2vpn_id:
                raise CannotExport("interface_taken", interface=end.name, by=str(other.get("display", "")))
            owner = (row.get("custom_fields") or {}).get(line_mapping.ID_FIELD)
            if owner not in (None, "", str(self._vll.pk)):
                raise CannotExport("interface_taken", interface=end.name, by=str(owner))
            return int(row["id"])
        values = {
            "device": end.device,
            "name": end.name,
            "type": "virtual",
            "parent": end.parent,
            "custom_fields": line_mapping.custom_fields(self._vll, self._configuration.base_url),
        }
        return int(self._client.create(_INTERFACES, values)["id"])

    def _interfaces_remove(self, *, but: set[int]) -> None:
        """Remove the interfaces that the portal created for this line, except those in ``but``.

        Interfaces that users created in NetBox are kept.
        """
        rows = self._client.rows(
            _INTERFACES,
            fields=("id", "custom_fields"),
            **{f"cf_{line_mapping.ID_FIELD}": [str(self._vll.pk)]},
        )
        ours = [
            row["id"]
            for row in rows
            if (row.get("custom_fields") or {}).get(line_mapping.ID_FIELD) == str(self._vll.pk)
            and row["id"] not in but
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
        stays = not self._configuration.removes_at_the_end and "status" in row
        self._client.remove(_TERMINATIONS, [each["id"] for each in terminations.get(row["id"], [])])
        self._interfaces_remove(but=set())
        if stays:
            wanted = line_mapping.fields(self._vll, self._tenant(), self._client.version)
            self._update(row, {"status": wanted["status"]})
        else:
            self._client.remove(_L2VPNS, [row["id"]])

    def _interface_id(self, device: int, name: str) -> int | None:
        """Return the NetBox id of a device's interface with this name; None if there is none.

        The export uses this for ports that a user created in the portal: their NetBox ids are not stored.
        """
        rows = self._client.rows(_INTERFACES, fields=("id", "name"), device_id=[device], name=[name])
        return next((row["id"] for row in rows if row["name"] == name), None)

    def _tenant(self) -> int | None:
        return _object_of(CUSTOMER, self._vll.customer_id)

    def _note(self, **written: Any) -> None:
        """Record written values immediately.

        If the values were not recorded and this worker was killed, the next worker would mistake them for a
        user's edit.
        """
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
