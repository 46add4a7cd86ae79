"""Objects read from NetBox, in a compact form. 5,000 interfaces need a few megabytes of memory."""

from dataclasses import dataclass, field


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
    """An interface. The MTU is in bytes and the speed in kbit/s, as in NetBox. Both are None if NetBox has no
    value.

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
