"""Pure functions that map NetBox's objects to rows of the portal's inventory.

An object that cannot be mapped becomes a finding. Missing values are not guessed. A link whose MTU is null in
NetBox is imported with an unknown MTU, which blocks orders. A port whose MTU is null is not created.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.core.plain_text import is_plain, made_plain
from portal.inventory.kinds import LIMITS, is_interface_name
from portal.netbox_sync.client import Configuration
from portal.netbox_sync.netbox_reader import Device, Interface, Named, Observed

SITE, CUSTOMER, ROUTER, PORT, LINK = "site", "customer", "router", "port", "link"
# Rows are created in this order of kinds, because rows refer only to rows of earlier kinds.
KINDS = (SITE, CUSTOMER, ROUTER, PORT, LINK)
# The difference between a port's largest frame and the IP MTU in NetBox: the Ethernet header and two VLAN
# tags (docs/integrate/netbox.md).
FRAME_OVER_MTU = 22
_ROUTER_NAME = re.compile(r"[a-z0-9-]{1,63}\Z")
# The nominal rate in the name of an interface type (IEEE 802.3): 1000base-t, 2.5gbase-t, 100gbase-x-qsfp28.
_RATE = re.compile(r"(\d+(?:\.\d+)?)(g|t)?base-")
_UNIT_BPS = {None: 10**6, "g": 10**9, "t": 10**12}
_DESCRIPTION = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """A message about an object that was not imported, or that needs attention.

    ``code`` selects the sentence in ``netbox_status``. ``subject``: the name of the object.
    """

    code: str
    subject: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Wanted:
    """A row that the portal should have, because NetBox has the object.

    * ``id``: the id of the object in NetBox. References in ``fields`` and ``place`` are also such ids.
    * ``place``: the key of the row within its kind. By this key, the import also finds a row that a user
      created in the portal.
    * ``fields``: the values of the row.
    * ``lacks``: the code of the reason why the row cannot be created; "" if it can be created.
    """

    kind: str
    id: int
    place: tuple[Any, ...]
    name: str
    fields: dict[str, Any]
    lacks: str = ""


@dataclass(slots=True)
class Wish:
    """The inventory that the portal should have, by kind, and findings."""

    rows: dict[str, list[Wanted]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    findings: list[Finding] = field(default_factory=list)

    def note(self, code: str, subject: str, **facts: Any) -> None:
        self.findings.append(Finding(code, subject, facts))


def wanted(observed: Observed, configuration: Configuration) -> Wish:
    """Return the rows that the portal should have according to NetBox, and findings."""
    wish = Wish()
    routers = _routers(observed, configuration, wish)
    interfaces = _interfaces(observed.interfaces, routers, wish)
    _links(interfaces, routers, configuration, wish)
    tenants = {tenant.id: tenant for tenant in observed.tenants}
    _ports(interfaces, routers, configuration, tenants, wish)
    _named(SITE, (routers[each].site for each in sorted(routers)), wish)
    _named(CUSTOMER, tenants.values(), wish)
    return wish


def sides_place(*sides: tuple[Any, str]) -> tuple[Any, ...]:
    """Return the place of a link: its sides (router, interface), in an order of their own."""
    return tuple(sorted(sides, key=repr))


def _routers(observed: Observed, configuration: Configuration, wish: Wish) -> dict[int, Device]:
    loopbacks = _loopbacks(observed, configuration, wish)
    names = Counter(device.name.lower() for device in observed.devices)
    good = {}
    for device in sorted(observed.devices, key=lambda device: device.id):
        name = device.name.lower()
        if not _ROUTER_NAME.match(name):
            wish.note("router_name", _known_as(device))
            continue
        if names[name] > 1:
            wish.note("duplicate", name, what=ROUTER, id=device.id)
            continue
        good[device.id] = device
        fields = {"site": device.site.id, **loopbacks.get(device.id, {})}
        wish.rows[ROUTER].append(Wanted(ROUTER, device.id, (name,), name, fields))
    shared = Counter(
        address
        for row in wish.rows[ROUTER]
        for key, address in row.fields.items()
        if key != "site" and address
    )
    for row in wish.rows[ROUTER]:
        for key in ("loopback4", "loopback6"):
            if shared[row.fields.get(key)] > 1:
                address = row.fields.pop(key)
                wish.note("address_twice", row.name, address=address)
    return good


def _loopbacks(
    observed: Observed, configuration: Configuration, wish: Wish
) -> dict[int, dict[str, str | None]]:
    """Return the loopback addresses by device. A family with several addresses on a device is left out."""
    if not configuration.loopback_interface:
        return {
            device.id: {"loopback4": device.primary4, "loopback6": device.primary6}
            for device in observed.devices
        }
    hosts: dict[tuple[int, int], list[str]] = defaultdict(list)
    for address in observed.addresses:
        hosts[address.device, address.family].append(address.host)
    found: dict[int, dict[str, str | None]] = {}
    for device in observed.devices:
        fields = found.setdefault(device.id, {})
        for family in (4, 6):
            there = sorted(set(hosts[device.id, family]))
            if len(there) > 1:
                interface = configuration.loopback_interface
                wish.note("two_addresses", _known_as(device), addresses=", ".join(there), interface=interface)
            else:
                fields[f"loopback{family}"] = there[0] if there else None
        if not hosts[device.id, 4] and not hosts[device.id, 6]:
            wish.note("no_loopback", _known_as(device), interface=configuration.loopback_interface)
    return found


def _interfaces(
    observed: Iterable[Interface], routers: Mapping[int, Device], wish: Wish
) -> dict[int, Interface]:
    """Return the interfaces of routers by id, without interfaces whose names are impossible in VPP."""
    good = {}
    for interface in sorted(observed, key=lambda each: each.id):
        if interface.device not in routers:
            continue
        if is_interface_name(interface.name):
            good[interface.id] = interface
        else:
            wish.note("interface_name", made_plain(_at(interface, routers)))
    return good


def _links(
    interfaces: Mapping[int, Interface],
    routers: Mapping[int, Device],
    configuration: Configuration,
    wish: Wish,
) -> None:
    for a, z, reachable in _pairs(interfaces, routers, configuration, wish):
        name = f"{_at(a, routers)} — {_at(z, routers)}"
        if a.device == z.device:
            wish.note("cable_within_router", name)
            continue
        if not reachable:
            wish.note("cable_not_connected", name)
            continue
        fields: dict[str, Any] = {}
        for side, interface in (("a", a), ("z", z)):
            fields |= {f"{side}_router": interface.device, f"{side}_interface": interface.name}
            fields[f"{side}_ip_mtu"] = _within("a_ip_mtu", interface.mtu)
            if interface.mtu is None:
                wish.note("link_mtu_missing", _at(interface, routers), link=name)
            elif fields[f"{side}_ip_mtu"] is None:
                wish.note("mtu_impossible", _at(interface, routers), mtu=interface.mtu)
        place = sides_place((a.device, a.name), (z.device, z.name))
        wish.rows[LINK].append(Wanted(LINK, a.id, place, name, fields))


def _pairs(
    interfaces: Mapping[int, Interface],
    routers: Mapping[int, Device],
    configuration: Configuration,
    wish: Wish,
) -> Iterator[tuple[Interface, Interface, bool]]:
    """Yield each pair of interfaces that a cable connects, and whether the cable is connected.

    Each pair is yielded once, with the lower id first, and with bundles instead of their members.
    """
    linked: dict[tuple[int, int], bool] = {}
    of_customers = {configuration.uni_tag, configuration.enni_tag}
    for here in interfaces.values():
        if not here.far or here.tags & of_customers:
            continue
        if len(here.far) > 1:
            wish.note("cable_to_many", _at(here, routers), count=len(here.far))
            continue
        there = interfaces.get(here.far[0])
        if there is None or there.tags & of_customers:
            # The cable is no backbone link. It leads to a customer's device, a switch or a foreign router.
            continue
        a, z = sorted((_bundle(here, interfaces), _bundle(there, interfaces)), key=lambda each: each.id)
        linked[a.id, z.id] = linked.get((a.id, z.id), False) or here.reachable
    uses = Counter(interface for pair in linked for interface in pair)
    for (a_id, z_id), reachable in linked.items():
        a, z = interfaces[a_id], interfaces[z_id]
        if a_id != z_id and (uses[a_id] > 1 or uses[z_id] > 1):
            twice = a if uses[a_id] > 1 else z
            wish.note("interface_in_two_links", _at(twice, routers))
            continue
        yield a, z, reachable


def _bundle(interface: Interface, interfaces: Mapping[int, Interface]) -> Interface:
    """Return the bundle (LAG) that the interface belongs to; the interface itself if it is in no bundle."""
    return interfaces.get(interface.lag, interface) if interface.lag is not None else interface


def _ports(
    interfaces: Mapping[int, Interface],
    routers: Mapping[int, Device],
    configuration: Configuration,
    tenants: dict[int, Named],
    wish: Wish,
) -> None:
    in_links = {
        (row.fields[f"{side}_router"], row.fields[f"{side}_interface"])
        for row in wish.rows[LINK]
        for side in "az"
    }
    for interface in interfaces.values():
        kinds = [
            kind
            for kind, tag in (("uni", configuration.uni_tag), ("enni", configuration.enni_tag))
            if tag in interface.tags
        ]
        if not kinds:
            continue
        name = _at(interface, routers)
        if len(kinds) > 1 or (interface.device, interface.name) in in_links:
            wish.note("two_uses", name)
            continue
        if interface.tenant is not None:
            tenants.setdefault(interface.tenant.id, interface.tenant)
        fields: dict[str, Any] = {
            "kind": kinds[0],
            "description": made_plain(interface.description)[:_DESCRIPTION],
            "customer": interface.tenant.id if interface.tenant else None,
        }
        lacks = ""
        if speed := _within("speed_bps", _speed(interface)):
            fields["speed_bps"] = speed
        else:
            lacks = "speed_missing"
        if interface.mtu is None:
            lacks = "port_mtu_missing"
        elif frame := _within("max_frame", interface.mtu + FRAME_OVER_MTU):
            fields["max_frame"] = frame
        else:
            lacks = "mtu_impossible"
        if lacks:
            wish.note(lacks, name, mtu=interface.mtu)
        place = (interface.device, interface.name)
        wish.rows[PORT].append(Wanted(PORT, interface.id, place, name, fields, lacks))


def _named(kind: str, rows: Iterable[Named], wish: Wish) -> None:
    """Add sites or customers. A name that is not plain text or that occurs twice becomes a finding."""
    by_id = {row.id: row for row in rows}
    names = Counter(row.name for row in by_id.values())
    for row in sorted(by_id.values(), key=lambda row: row.id):
        if not is_plain(row.name):
            wish.note("not_plain_text", made_plain(row.name), what=kind)
        elif names[row.name] > 1:
            wish.note("duplicate", row.name, what=kind, id=row.id)
        else:
            wish.rows[kind].append(Wanted(kind, row.id, (row.name,), row.name, {"name": row.name}))


def _speed(interface: Interface) -> int | None:
    """Return the speed (bit/s) in NetBox, else the nominal rate of the interface's type, else None."""
    if interface.speed_kbps:
        return interface.speed_kbps * 1000
    named = _RATE.match(interface.type)
    return int(float(named[1]) * _UNIT_BPS[named[2]]) if named else None


def _within(limit: str, value: int | None) -> int | None:
    """Return the value; None if it is outside the inventory's limits."""
    minimum, maximum = LIMITS[limit]
    return value if value is not None and minimum <= value <= maximum else None


def _known_as(device: Device) -> str:
    """Return a device's name as plain text for a finding. Names in NetBox may contain any characters."""
    return made_plain(device.name).strip() or f"device {device.id}"


def _at(interface: Interface, routers: Mapping[int, Device]) -> str:
    return f"{routers[interface.device].name}:{interface.name}"
