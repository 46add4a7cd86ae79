"""The reader of NetBox. It requests the needed objects and fields, and keeps only what the import uses.

The objects are kept in a compact form: 5,000 interfaces need a few megabytes of memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_interface
from typing import Any

from portal.netbox_sync.client import Client, Configuration, Row
from portal.netbox_sync.errors import NetboxError


@dataclass(frozen=True, slots=True)
class Named:
    """A site or a tenant."""

    id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device. ``primary4`` and ``primary6``: the primary IP addresses, without prefix lengths."""

    id: int
    name: str
    site: Named
    primary4: str | None = None
    primary6: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """An interface. MTU in bytes and speed in kbit/s, as in NetBox; both are None if NetBox has no value.

    ``lag``: the id of its bundle. ``far``: the ids of the interfaces at the other end of its cable, through
    patch panels and circuits. ``reachable``: whether all parts of this connection have the status connected.
    """

    id: int
    device: int
    name: str
    type: str
    mtu: int | None = None
    speed_kbps: int | None = None
    tags: frozenset[str] = frozenset()
    lag: int | None = None
    far: tuple[int, ...] = ()
    reachable: bool = False
    description: str = ""
    tenant: Named | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address of an interface, without its prefix length. ``family``: 4 or 6."""

    device: int
    interface: str
    family: int
    host: str


@dataclass(slots=True)
class Observed:
    """All objects of NetBox that an import uses."""

    devices: list[Device] = field(default_factory=list)
    interfaces: list[Interface] = field(default_factory=list)
    addresses: list[Address] = field(default_factory=list)
    tenants: list[Named] = field(default_factory=list)


# A function that gets the phase, the number of handled objects, and the total number (None if unknown).
Progress = Callable[[str, int, int | None], None]
# The maximum number of device ids in one request. More of them might make the URL too long for a proxy.
DEVICES_AT_ONCE = 100
_DEVICE = ("id", "name", "site", "primary_ip4", "primary_ip6")
_INTERFACE = (
    "id",
    "device",
    "name",
    "type",
    "mtu",
    "speed",
    "tags",
    "lag",
    "description",
    "connected_endpoints",
    "connected_endpoints_type",
    "connected_endpoints_reachable",
    "custom_fields",
)
_ADDRESS = ("id", "address", "assigned_object")


def read(client: Client, configuration: Configuration, progress: Progress) -> Observed:
    """Read all objects for an import, page by page. Interfaces that are not used are discarded immediately.

    Raises NetboxError. It never returns a partial result.
    """
    reader = _Reader(client, configuration, progress)
    observed = Observed()
    try:
        observed.devices = list(reader.devices())
        for some in _batched([device.id for device in observed.devices]):
            observed.interfaces += reader.interfaces(some)
            observed.addresses += reader.addresses(some)
        if configuration.tenant_tags:
            observed.tenants = list(reader.tenants())
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NetboxError("nonsense", what=reader.reading, why=f"{type(error).__name__}: {error}") from error
    return observed


class _Reader:
    def __init__(self, client: Client, configuration: Configuration, progress: Progress) -> None:
        self._client, self._configuration, self._progress = client, configuration, progress
        self._done: dict[str, int] = {}
        self.reading = ""

    def devices(self) -> Iterator[Device]:
        filters: dict[str, Any] = {"status": ["active"]}
        if self._configuration.device_roles:
            filters["role"] = list(self._configuration.device_roles)
        if self._configuration.device_tags:
            filters["tag"] = list(self._configuration.device_tags)
        for row in self._rows("dcim.devices", "devices", _DEVICE, **filters):
            site = _named(row.get("site"))
            if site is None:
                raise NetboxError("nonsense", what="dcim.devices", why=f"device {row['id']} has no site")
            yield Device(
                id=row["id"],
                name=str(row.get("name") or ""),
                site=site,
                primary4=_host((row.get("primary_ip4") or {}).get("address")),
                primary6=_host((row.get("primary_ip6") or {}).get("address")),
            )

    def interfaces(self, devices: list[int]) -> Iterator[Interface]:
        """Yield the ports, cabled interfaces and bundles of these devices.

        Sub-interfaces are not requested, because there may be many.
        """
        for filters in ({"kind": "physical"}, {"type": ["lag"]}):
            for row in self._rows("dcim.interfaces", "interfaces", _INTERFACE, device_id=devices, **filters):
                interface = self._interface(row)
                if self._matters(interface):
                    yield interface

    def addresses(self, devices: list[int]) -> Iterator[Address]:
        wanted = self._configuration.loopback_interface
        if not wanted:
            return
        for row in self._rows("ipam.ip-addresses", "addresses", _ADDRESS, device_id=devices):
            on = row.get("assigned_object") or {}
            host = _host(row.get("address"))
            if on.get("name") == wanted and host and (device := (on.get("device") or {}).get("id")):
                yield Address(device, wanted, 6 if ":" in host else 4, host)

    def tenants(self) -> Iterator[Named]:
        tags = list(self._configuration.tenant_tags)
        for row in self._rows("tenancy.tenants", "tenants", ("id", "name"), tag=tags):
            yield Named(row["id"], str(row["name"]))

    def _matters(self, interface: Interface) -> bool:
        of_ours = {self._configuration.uni_tag, self._configuration.enni_tag}
        return bool(interface.far or interface.type == "lag" or interface.tags & of_ours)

    def _interface(self, row: Row) -> Interface:
        far = row.get("connected_endpoints") or []
        ends_on_interfaces = row.get("connected_endpoints_type") == "dcim.interface"
        return Interface(
            id=row["id"],
            device=int((row.get("device") or {})["id"]),
            name=str(row["name"]),
            type=_choice(row.get("type")),
            mtu=row.get("mtu"),
            speed_kbps=row.get("speed"),
            tags=frozenset(str(tag["slug"]) for tag in row.get("tags") or []),
            lag=(row.get("lag") or {}).get("id"),
            far=tuple(sorted(int(each["id"]) for each in far)) if ends_on_interfaces else (),
            reachable=bool(row.get("connected_endpoints_reachable")),
            description=str(row.get("description") or ""),
            tenant=_named((row.get("custom_fields") or {}).get(self._configuration.customer_field)),
        )

    def _rows(self, path: str, what: str, fields: tuple[str, ...], **filters: Any) -> Iterator[Row]:
        self.reading = path
        for row in self._client.rows(path, fields=fields, **filters):
            self._done[what] = self._done.get(what, 0) + 1
            self._progress(what, self._done[what], None)
            yield row


def _batched(ids: list[int]) -> Iterator[list[int]]:
    for at in range(0, len(ids), DEVICES_AT_ONCE):
        yield ids[at : at + DEVICES_AT_ONCE]


def _named(row: Any) -> Named | None:
    """Return a nested object with its id and name; None if the field is empty or of another type."""
    if not isinstance(row, dict) or not isinstance(row.get("id"), int) or not row.get("name"):
        return None
    return Named(row["id"], str(row["name"]))


def _choice(value: Any) -> str:
    return str(value["value"]) if isinstance(value, dict) else str(value or "")


def _host(address: Any) -> str | None:
    """Return an address without its prefix length: ``10.0.0.1`` for ``10.0.0.1/32``; None if it is empty."""
    if not address:
        return None
    try:
        return str(ip_interface(str(address)).ip)
    except ValueError as error:
        raise NetboxError("nonsense", what="ipam.ip-addresses", why=str(error)) from error
