"""A revision of a line: the line as ordered, with the values that the portal allocated; and its changes.

The properties are declared as in ``portal.vll.line_spec``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from django.utils.translation import gettext_lazy as _

from portal.core.network.encapsulations import Encapsulation, Transport
from portal.core.network.vlan_tags import Tagging, Tags
from portal.vll.line_spec import ANY, END, LINE, ChangeKind, EndSpec, LineSpec, Property, facts, properties_of
from portal.vll.models import Order, Vll
from portal.vll.states import AdminStatus, OrderState


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedEnd(EndSpec):
    """An end with its allocated values. ``vlan``: the allocated outer VLAN, None for a whole port."""

    vlan: int | None = field(
        metadata=facts(column="outer_vlan", label=_("Outer VLAN"), change=ChangeKind.VLAN)
    )
    tunnel_address: str | None = field(default=None, metadata=facts(label=_("Tunnel address")))

    @classmethod
    def of(cls, end: EndSpec, *, vlan: int | None) -> Self:
        """Return this end with its allocated outer VLAN, without a tunnel address."""
        return cls(**{name: getattr(end, name) for name in _END_NAMES}, vlan=vlan)

    @property
    def spec(self) -> EndSpec:
        """Return the end as ordered."""
        return EndSpec(**{name: getattr(self, name) for name in _END_NAMES})

    @property
    def leased_tags(self) -> Tags:
        """Return the tags with the allocated outer VLAN."""
        return Tags(self.tagging, self.vlan, self.inner_vlan, self.exact_match)

    @property
    def access(self) -> tuple[object, ...]:
        """Return the values that routers cannot change without an interruption of the line."""
        return self.port, self.tagging, self.vlan, self.inner_vlan, self.exact_match

    @property
    def columns(self) -> dict[str, Any]:
        """Return the values of the VllEnd's columns, apart from its port."""
        values = {column: getattr(self, name) for column, name in _END_COLUMNS if name != "port"}
        return values | {"requested_outer_vlan": self.requested_outer_vlan}

    def as_json(self) -> dict[str, Any]:
        """Return the end for a JSON column. The members have the names of the model's columns."""
        return _readable(self.columns | {"port": self.port}, _NEW_END_DEFAULTS)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """Return the end that ``as_json`` returned. Members of later releases are ignored."""
        values = {name: kept[column] for column, name in _END_COLUMNS if column in kept}
        tagging = values["tagging"] = Tagging(values["tagging"])
        # A VLAN that the portal chose is null in the column of the requested VLAN.
        if values["outer_vlan"] is None and tagging is not Tagging.UNTAGGED:
            values["outer_vlan"] = ANY
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRevision(LineSpec):
    """One revision of a line: a LineSpec with its allocated values and its administrative state.

    ``frame``: the largest carried frame in bytes. Revisions are compared, stored with orders, and restored.
    """

    a_end: AllocatedEnd
    z_end: AllocatedEnd
    encapsulation: str = field(metadata=facts(label=_("Encapsulation"), change=ChangeKind.TRANSPORT))
    family: int | None = field(metadata=facts(label=_("IP version"), change=ChangeKind.TRANSPORT))
    vni: int | None = field(metadata=facts(label=_("VNI")))
    gre_key: int | None = field(default=None, metadata=facts(label=_("GRE key")))
    frame: int
    admin_status: str = field(metadata=facts(label=_("Admin status")))
    decommission_at: datetime | None = None

    @property
    def ends(self) -> Mapping[str, AllocatedEnd]:
        """Return the ends by their side."""
        return {"a": self.a_end, "z": self.z_end}

    @property
    def spec(self) -> LineSpec:
        """Return the line as ordered. An order with this specification would order this revision again."""
        line = {each.name: getattr(self, each.name) for each in LINE}
        return LineSpec(**line, a_end=self.a_end.spec, z_end=self.z_end.spec)

    @property
    def allocated_transport(self) -> Transport:
        """Return the allocated transport."""
        return Transport.of(Encapsulation(self.encapsulation), self.family)

    @property
    def tunnel_key(self) -> tuple[object, ...]:
        """Return the values of the tunnel that both ends share."""
        return self.encapsulation, self.family, self.vni, self.gre_key

    @property
    def tunnel(self) -> tuple[object, ...]:
        """Return the values of the tunnel. If one changes, both routers must build another tunnel."""
        return *self.tunnel_key, self.a_end.tunnel_address, self.z_end.tunnel_address

    @property
    def gre_pair(self) -> tuple[str, str] | None:
        """Return the address pair of a GRE tunnel without a key.

        No other tunnel without a key may use the pair.
        """
        a_address, z_address = self.a_end.tunnel_address, self.z_end.tunnel_address
        if self.encapsulation != Encapsulation.GRE or self.gre_key is not None:
            return None
        if a_address is None or z_address is None:
            return None
        return a_address, z_address

    @property
    def columns(self) -> dict[str, Any]:
        """Return the values of the Vll's columns."""
        return {column: getattr(self, name) for column, name in _LINE_COLUMNS}

    def as_json(self) -> dict[str, Any]:
        """Return the revision for a JSON column; ``from_json`` reads it."""
        at = self.decommission_at
        ends = {side: end.as_json() for side, end in self.ends.items()}
        line = _readable(self.columns, _NEW_LINE_DEFAULTS)
        return line | ends | {"decommission_at": None if at is None else at.isoformat()}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """Return the revision that ``as_json`` returned.

        Revisions that earlier releases stored lack newer members, which then have their default. Members of
        later releases are ignored.
        """
        values = {name: kept[column] for column, name in _LINE_COLUMNS if column in kept}
        if (at := values.get("decommission_at")) is not None:
            values["decommission_at"] = datetime.fromisoformat(at)
        a_end, z_end = (AllocatedEnd.from_json(kept[side]) for side in "az")
        return cls(**values, a_end=a_end, z_end=z_end)


# The ordered and the allocated properties.
REVISION = tuple(each for each in properties_of(LineRevision) if each.name != "description")
ALLOCATED_END = properties_of(AllocatedEnd)
_END_NAMES = tuple(each.name for each in END)
# The column and the name of each stored value.
_LINE_COLUMNS = tuple((each.column, each.name) for each in REVISION)
_END_COLUMNS = tuple((each.column, each.name) for each in ALLOCATED_END)
# The defaults of properties that the previous release does not know, by column.
_NEW_LINE_DEFAULTS = {each.column: each.default for each in REVISION if each.is_new}
_NEW_END_DEFAULTS = {each.column: each.default for each in ALLOCATED_END if each.is_new}
# The column and the attribute of VllEnd that contains its value.
_END_ATTRIBUTES = tuple(
    (each.column, "port_id" if each.name == "port" else each.column) for each in ALLOCATED_END
)


def _readable(kept: dict[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the previous release can read: without the defaults of new properties."""
    return {column: value for column, value in kept.items() if column not in new or value != new[column]}


def content_of(vll: Vll) -> LineRevision:
    """Return the VLL's present revision."""
    line: dict[str, Any] = {name: getattr(vll, column) for column, name in _LINE_COLUMNS}
    ends = {
        end.side: AllocatedEnd.from_json(
            {column: getattr(end, attribute) for column, attribute in _END_ATTRIBUTES}
        )
        for end in vll.ends.all()
    }
    return LineRevision(**line, a_end=ends["a"], z_end=ends["z"], description=vll.description)


def takes_another_way(before: LineRevision, after: LineRevision) -> bool:
    """Return whether both routers must change the line's tunnel before frames pass again."""
    return before.tunnel != after.tunnel


def loses_no_frame(before: LineRevision, after: LineRevision) -> bool:
    """Return whether the routers make the change in place, while frames flow (tests/lab/test_in_place.py)."""
    same_access = all(end.access == after.ends[side].access for side, end in before.ends.items())
    return not takes_another_way(before, after) and same_access and before.admin_status == after.admin_status


_DESCRIPTION = LINE[0]
_VLAN = next(each for each in ALLOCATED_END if each.name == "vlan")
# An order shows the allocated VLAN at the place of the requested one.
_OF_END = tuple(_VLAN if each.name == "outer_vlan" else each for each in ALLOCATED_END if each is not _VLAN)


@dataclass(frozen=True, slots=True)
class Difference:
    """A property that changes, with its stored values. ``side``: "a", "z", or "" for the line itself."""

    side: str
    property: Property
    before: Any
    after: Any


def differences_of(order: Order) -> list[Difference]:
    """Return the differences that a modify order makes to its line; nothing for any other order."""
    if order.before is None and order.after is None and order.described is None:
        return []
    before, after, described = order.before or {}, order.after or {}, order.described or {}
    found = [Difference("", _DESCRIPTION, described.get("before"), described.get("after"))]
    of_sides = [("", before, after, REVISION)]
    of_sides += [(side, before.get(side, {}), after.get(side, {}), _OF_END) for side in "az"]
    found += [
        Difference(side, each, was.get(each.column, each.absent), will_be.get(each.column, each.absent))
        for side, was, will_be, properties in of_sides
        for each in properties
    ]
    return [each for each in found if each.before != each.after and each.property.label is not None]


def differences_between(before: LineSpec, after: LineSpec) -> list[Difference]:
    """Return the differences between two specifications of the same line, apart from the description."""
    found = [
        Difference("", each, getattr(before, each.name), getattr(after, each.name))
        for each in LINE
        if each is not _DESCRIPTION
    ]
    for side, end in before.ends.items():
        wanted = after.ends[side]
        found += [Difference(side, each, getattr(end, each.name), getattr(wanted, each.name)) for each in END]
    return [each for each in found if each.before != each.after]


def applied_cir_bps(vll: Vll, newest: Order | None) -> int:
    """Return the CIR (bit/s) that the routers have now. Until both routers confirm the newest order, this is
    the CIR before the order.

    ``newest``: the line's newest order. While it is under way, the line's row already has the ordered rate.
    """
    moving = newest is not None and not newest.is_terminal and newest.state != OrderState.PENDING_APPROVAL
    before = (newest.before or {}) if newest is not None and moving else {}
    rate: int = before.get("cir_bps", vll.cir_bps)
    return rate


def change_kinds(order: Order) -> list[ChangeKind]:
    """Return the kinds of change of a modify order, in the order of ChangeKind; none for any other order."""
    found = {kind for each in differences_of(order) if (kind := _kind(order, each)) is not None}
    return [kind for kind in ChangeKind if kind in found]


def _kind(order: Order, each: Difference) -> ChangeKind | None:
    if each.property.name == "port":
        return ChangeKind.MOVE_A_END if each.side == "a" else ChangeKind.MOVE_Z_END
    if each.property.name != "admin_status":
        return each.property.change
    if (order.after or {}).get("decommission_at"):
        return ChangeKind.COOLING_OFF
    return ChangeKind.RESUME if each.after == AdminStatus.UP else ChangeKind.SUSPEND
