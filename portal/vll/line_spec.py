"""The one declaration of a line: its properties, and a revision with the values that the portal allocated.

LineSpec and EndSpec declare each property with the facts that its representations need. Forms, serializers,
columns of imports and exports, differences, stored revisions and the audit trail are derived from them. To
add a property, add a field here and a column to the model.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Literal, Self

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.core.network.encapsulations import Encapsulation, Transport
from portal.core.network.required_mtu import ETHERNET_HEADER, VLAN_TAG
from portal.core.network.vlan_tags import Tagging, Tags, carried_tags
from portal.vll.models import Vll
from portal.vll.states import ChangeKind

AUTO, ANY = "auto", "any"
TRANSPORT_CHOICES = (AUTO, *(each.value for each in Transport))
Text = str | Promise


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """The facts about one property of a line or of an end.

    ``name``: the member of LineSpec or EndSpec, of the REST API, and of tables after ``a_`` or ``z_``.
    ``column``: the column of the model, and the member of a stored revision. ``label``: the name in
    differences; None for a value that differences do not show.
    """

    name: str
    column: str
    # MISSING if each order must contain a value.
    default: Any
    label: Text | None = None
    unit: Literal["", "bytes", "bit/s"] = ""
    choices: tuple[str, ...] = ()
    # The least number that the API reads; None: any whole number. Operations check the range that is allowed.
    least: int | None = 0
    # The texts of True and False in differences.
    words: tuple[Text, Text] = (_("on"), _("off"))
    change: ChangeKind | None = None
    # The label (None: as above) and help in forms, the help in the API, and the column of tables.
    form_label: Text | None = None
    form_help: Text = ""
    api_help: str = ""
    # Whether the API also describes the member in requests for changes.
    api_help_in_changes: bool = False
    cell_meaning: Text = ""
    cell_example: str = ""
    # Whether the exported list of lines has the ordered value among its ordered values.
    exported: bool = True
    # What the page of a line says about a property that is on.
    meaning_of_on: Text = ""
    # Whether only the NOC chooses the value. Customers see it only if it was chosen for their line.
    noc_chooses: bool = False

    @property
    def is_flag(self) -> bool:
        """Return whether the value is true or false."""
        return isinstance(self.default, bool)

    @property
    def is_required(self) -> bool:
        """Return whether each order must contain a value."""
        return self.default is MISSING


_ENDS = ("a_end", "z_end")


def _facts(**facts: Any) -> dict[str, Any]:
    """Return the facts of a Property as metadata of a dataclass field."""
    return facts


def _properties(of: type) -> tuple[Property, ...]:
    return tuple(
        Property(**{"name": each.name, "column": each.name, "default": each.default, **each.metadata})
        for each in fields(of)
        if each.name not in _ENDS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSpec:
    """One end as ordered: the id of its port, and the frames of the port that belong to the line."""

    port: int = field(
        metadata=_facts(
            label=_("Port"),
            least=1,
            api_help="The `id` of one of your ports.",
            cell_meaning=_("Router and interface, with a colon between them"),
        )
    )
    tagging: Tagging = field(
        metadata=_facts(
            label=_("Tagging"),
            choices=tuple(each.value for each in Tagging),
            change=ChangeKind.ENCAPSULATION,
            form_label=_("What it carries"),
            api_help="The frames that belong to the line: `untagged` for the whole port, `dot1q` for one"
            " VLAN, `qinq` or `dot1ad` for an outer and an inner VLAN.",
            cell_meaning=_(
                "untagged: the whole port; dot1q: one VLAN; qinq, dot1ad: two. Empty: by the VLANs"
            ),
            cell_example=Tagging.DOT1Q.value,
        )
    )
    # "any" lets the portal choose.
    outer_vlan: int | Literal["any"] | None = field(
        default=None,
        metadata=_facts(
            column="requested_outer_vlan",
            label=_("Outer VLAN"),
            form_help=_("1–4094, or “any” for a free one, the same at both ends where possible"),
            api_help='`"any"` lets the portal choose a free VLAN. Left out or null for a whole port.',
            cell_meaning=_("1 to 4094, or “any” for one that is free; empty for a whole port"),
        ),
    )
    inner_vlan: int | None = field(
        default=None,
        metadata=_facts(
            label=_("Inner VLAN"),
            least=None,
            change=ChangeKind.VLAN,
            form_help=_("1–4094"),
            api_help="From 1 to 4094; only for `qinq` and `dot1ad`.",
            cell_meaning=_("1 to 4094, only with qinq and dot1ad"),
        ),
    )
    exact_match: bool = field(
        default=True,
        metadata=_facts(
            label=_("Exact match"),
            words=(_("yes"), _("no")),
            change=ChangeKind.ENCAPSULATION,
            # The form offers the opposite.
            form_label=_("Also accept frames with further tags"),
            form_help=_("The further tag takes 4 bytes of the MTU."),
            api_help="False also accepts frames with further tags.",
            cell_meaning=_("“no” also accepts frames with further tags; empty: yes"),
            cell_example="yes",
        ),
    )

    @property
    def requested_outer_vlan(self) -> int | None:
        """Return the requested VLAN, or None for "any"."""
        return None if self.outer_vlan == "any" else self.outer_vlan

    @property
    def tags(self) -> Tags:
        """Return the requested tags."""
        return Tags(self.tagging, self.requested_outer_vlan, self.inner_vlan, self.exact_match)

    def allocated(self, *, vlan: int | None) -> "AllocatedEnd":
        """Return this end with its allocated outer VLAN, without a tunnel address."""
        return AllocatedEnd(**{name: getattr(self, name) for name in _END_NAMES}, vlan=vlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSpec:
    """A line as ordered. Sizes are in bytes, rates in bit/s. The portal chooses bursts that are None.

    ``transport``: "auto" or the value of a Transport. The description does not belong to revisions: it is
    only a label, a change of it counts immediately, and specifications that differ in it are equal.
    """

    description: str = field(
        default="",
        compare=False,
        metadata=_facts(
            label=_("Name or reference"),
            change=ChangeKind.DESCRIPTION,
            form_help=_("If left empty, the line is named after its sites"),
            api_help="Your name for the line.",
            cell_meaning=_("Name or reference: identifies a customer’s line when a table is sent again"),
            cell_example="Zürich–Amsterdam",
            exported=False,
        ),
    )
    a_end: EndSpec
    z_end: EndSpec
    svc_mtu: int = field(
        metadata=_facts(
            label=_("Largest packet (MTU)"),
            unit="bytes",
            change=ChangeKind.SVC_MTU,
            form_help=_("In bytes: 1500 is usual on the Internet; the path may carry more"),
            api_help="The largest IP packet that the line must carry, in bytes.",
            cell_meaning=_("The largest IP packet that is carried"),
            cell_example="1500",
        )
    )
    cir_bps: int = field(
        metadata=_facts(
            label=_("Bandwidth (CIR)"),
            unit="bit/s",
            change=ChangeKind.BANDWIDTH,
            form_label=_("Bandwidth"),
            api_help="The rate that is reserved for you in both directions, in bit/s.",
            cell_meaning=_("The bandwidth that is booked"),
            cell_example="100000000",
        )
    )
    cbs_bytes: int | None = field(
        default=None,
        metadata=_facts(
            column="requested_cbs_bytes",
            label=_("Committed burst (CBS)"),
            unit="bytes",
            change=ChangeKind.BANDWIDTH,
            form_help=_("In bytes; empty for 10 ms at the bandwidth"),
            api_help="CBS in bytes, at least the largest frame. Null lets the portal choose: 10 ms at the"
            " rate, but at least 10 of the largest frames.",
            api_help_in_changes=True,
            cell_meaning=_("Burst; empty: calculated from the rate"),
            exported=False,
        ),
    )
    eir_bps: int = field(
        default=0,
        metadata=_facts(
            label=_("Excess bandwidth (EIR)"),
            unit="bit/s",
            change=ChangeKind.BANDWIDTH,
            form_help=_("Forwarded beyond the bandwidth if capacity is free; not reserved"),
            api_help="Excess information rate in bit/s: traffic above the CIR up to this rate is forwarded"
            " if the network has capacity. It is not booked. 0 for none.",
            api_help_in_changes=True,
            cell_meaning=_("Excess rate, forwarded if capacity is free; empty: none"),
            cell_example="0",
        ),
    )
    ebs_bytes: int | None = field(
        default=None,
        metadata=_facts(
            column="requested_ebs_bytes",
            label=_("Excess burst (EBS)"),
            unit="bytes",
            change=ChangeKind.BANDWIDTH,
            form_help=_("In bytes; empty for 10 ms at the excess bandwidth"),
            api_help="EBS in bytes, at least the largest frame. Null lets the portal choose: 10 ms at the"
            " rate, but at least 10 of the largest frames.",
            api_help_in_changes=True,
            cell_meaning=_("Excess burst; empty: calculated from the rate"),
            exported=False,
        ),
    )
    transport: str = field(
        default=AUTO,
        metadata=_facts(
            column="requested_transport",
            label=_("Requested transport"),
            choices=TRANSPORT_CHOICES,
            change=ChangeKind.TRANSPORT,
            form_label=_("Transport"),
            form_help=_("Automatic picks the cheapest transport that fits the packet size and the routers"),
            api_help="The encapsulation of frames in the network. `auto` lets the portal choose one that"
            " carries `svc_mtu`.",
            cell_meaning=_("How frames cross the network; empty: auto"),
            cell_example=AUTO,
            exported=False,
            noc_chooses=True,
        ),
    )
    link_loss_forwarding: bool = field(
        default=False,
        metadata=_facts(
            label=_("Link loss forwarding"),
            change=ChangeKind.LINK_LOSS_FORWARDING,
            form_label=_("Forward a lost link to the other end"),
            form_help=_(
                "When your equipment at one end loses its link, the port at the other end is taken down too, "
                "so that your equipment there notices. Between two whole ports only."
            ),
            api_help="Whether the line shuts the port at one end while the other end has lost its link. Only"
            " for whole ports.",
            api_help_in_changes=True,
            cell_meaning=_(
                "“yes”: if one end loses its link, the other end’s port is taken down too; empty: no"
            ),
            cell_example="no",
            meaning_of_on=_("on: when one end loses its link, the other end's is taken down"),
        ),
    )

    @property
    def ends(self) -> Mapping[str, EndSpec]:
        """Return the ends by their side."""
        return {"a": self.a_end, "z": self.z_end}

    @property
    def peak_bps(self) -> int:
        """Return the largest rate that is forwarded: CIR plus EIR."""
        return self.cir_bps + self.eir_bps

    @property
    def carried_tags(self) -> int:
        """Return the number of tags inside the tunnel."""
        return carried_tags((end.tagging, end.exact_match) for end in self.ends.values())

    @property
    def largest_uni_frame(self) -> int:
        """Return the size in bytes of the largest frame at the UNI whose tagging has more tags.

        ``svc_mtu`` may be out of range.
        """
        tags = self.carried_tags + max(end.tagging.selecting_tags for end in self.ends.values())
        return self.svc_mtu + ETHERNET_HEADER + VLAN_TAG * tags

    def changed(self, changes: Mapping[str, Any]) -> "LineSpec":
        """Return this line after the changes: the members that change, with their new values.

        The value of ``a_end`` and ``z_end`` is a mapping of the members of EndSpec that change. If the
        changes set the EIR to 0 and do not contain an EBS, the EBS is dropped.
        """
        ends = {name: replace(getattr(self, name), **changes[name]) for name in _ENDS if name in changes}
        after = replace(self, **{**changes, **ends})
        return after if after.eir_bps or "ebs_bytes" in changes else replace(after, ebs_bytes=None)

    def changes_to(self, after: "LineSpec") -> dict[str, Any]:
        """Return the changes that turn this line into ``after``, apart from its description."""
        changes = {name: _differing(getattr(self, name), getattr(after, name), END) for name in _ENDS}
        ends = {name: change for name, change in changes.items() if change}
        return ends | {
            name: value for name, value in _differing(self, after, LINE).items() if name != "description"
        }


def _differing(one: object, other: object, properties: tuple[Property, ...]) -> dict[str, Any]:
    pairs = ((each.name, getattr(one, each.name), getattr(other, each.name)) for each in properties)
    return {name: after for name, before, after in pairs if before != after}


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedEnd(EndSpec):
    """An end with its allocated values. ``vlan``: the allocated outer VLAN, None for a whole port."""

    vlan: int | None = field(
        metadata=_facts(column="outer_vlan", label=_("Outer VLAN"), change=ChangeKind.VLAN)
    )
    tunnel_address: str | None = field(default=None, metadata=_facts(label=_("Tunnel address")))

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

    def as_json(self) -> dict[str, Any]:
        """Return the end for a JSON column. The members have the names of the model's columns."""
        kept = {column: getattr(self, name) for column, name in _END_COLUMNS}
        return kept | {"requested_outer_vlan": self.requested_outer_vlan}

    @property
    def columns(self) -> dict[str, Any]:
        """Return the values of the VllEnd's columns, apart from its port."""
        return {column: value for column, value in self.as_json().items() if column != "port"}

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

    ``frame``: the largest carried frame in bytes. Two revisions are compared, stored with an order, and
    restored.
    """

    a_end: AllocatedEnd
    z_end: AllocatedEnd
    encapsulation: str = field(metadata=_facts(label=_("Encapsulation"), change=ChangeKind.TRANSPORT))
    family: int | None = field(metadata=_facts(label=_("IP version"), change=ChangeKind.TRANSPORT))
    vni: int | None = field(metadata=_facts(label=_("VNI")))
    gre_key: int | None = field(default=None, metadata=_facts(label=_("GRE key")))
    frame: int
    admin_status: str = field(metadata=_facts(label=_("Admin status")))
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
        return self.columns | ends | {"decommission_at": None if at is None else at.isoformat()}

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


# The properties as ordered. REVISION and ALLOCATED_END also have the allocated ones.
LINE, END = _properties(LineSpec), _properties(EndSpec)
REVISION = tuple(each for each in _properties(LineRevision) if each.name != "description")
ALLOCATED_END = _properties(AllocatedEnd)
_END_NAMES = tuple(each.name for each in END)
# The column and the name of each stored value.
_LINE_COLUMNS = tuple((each.column, each.name) for each in REVISION)
_END_COLUMNS = tuple((each.column, each.name) for each in ALLOCATED_END)
# The column and the attribute of VllEnd that contains its value.
_END_ATTRIBUTES = tuple(
    (each.column, "port_id" if each.name == "port" else each.column) for each in ALLOCATED_END
)


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
