"""The one declaration of a line and its properties.

LineSpec and EndSpec declare each property with the facts that its representations need. Forms, serializers,
columns of imports and exports, differences, stored revisions and the audit trail are derived from them. To
add a property, add a field here and a column to the model.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Literal

from django.db import models
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from portal.core.network.encapsulations import Transport
from portal.core.network.required_mtu import ETHERNET_HEADER, MAX_SVC_MTU, MIN_SVC_MTU, VLAN_TAG
from portal.core.network.vlan_tags import Tagging, Tags, carried_tags

AUTO, ANY = "auto", "any"
Text = str | Promise


class ChangeKind(models.TextChoices):
    """The kinds of changes of a line in service."""

    DESCRIPTION = "description", _("name")
    BANDWIDTH = "bandwidth", _("bandwidth")
    SVC_MTU = "svc-mtu", _("packet size")
    TRANSPORT = "transport", _("transport")
    ENCAPSULATION = "encapsulation", _("encapsulation")
    LINK_LOSS_FORWARDING = "link-loss-forwarding", _("link loss forwarding")
    VLAN = "vlan", _("VLAN")
    MOVE_A_END = "move-a-end", _("move of the A end")
    MOVE_Z_END = "move-z-end", _("move of the Z end")
    SUSPEND = "suspend", _("suspend")
    RESUME = "resume", _("resume")
    COOLING_OFF = "cooling-off", _("stop before removal")


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
    # The largest number of characters of a text; 0 for other values.
    longest: int = 0
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
    # Another example in the API than in tables.
    api_example: Any = None
    # The value that a new form proposes, and the refusals of an empty and of an unreadable field.
    form_proposes: Any = None
    form_missing: Text = ""
    form_unreadable: Text = ""
    # Whether the exported list of lines has the ordered value among its ordered values.
    exported: bool = True
    # Whether the previous release does not know the property. It refuses revisions with unknown members, so
    # the default is not stored (ADR 84). The next release removes the mark.
    is_new: bool = False
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

    @property
    def absent(self) -> Any:
        """Return the value that a stored revision has without the member."""
        return None if self.is_required else self.default


_ENDS = ("a_end", "z_end")


def facts(**of_property: Any) -> dict[str, Any]:
    """Return the facts of a Property as metadata of a dataclass field."""
    return of_property


def properties_of(of: type) -> tuple[Property, ...]:
    """Return the properties that the fields of this class declare, apart from the ends."""
    return tuple(
        Property(**{"name": each.name, "column": each.name, "default": each.default, **each.metadata})
        for each in fields(of)
        if each.name not in _ENDS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSpec:
    """One end as ordered: the id of its port, and the frames of the port that belong to the line."""

    port: int = field(
        metadata=facts(
            label=_("Port"),
            least=1,
            form_missing=_("Choose a port."),
            api_help="The `id` of one of your ports.",
            api_example=12,
            cell_meaning=_("Router and interface, with a colon between them"),
        )
    )
    tagging: Tagging = field(
        metadata=facts(
            label=_("Tagging"),
            choices=tuple(each.value for each in Tagging),
            change=ChangeKind.ENCAPSULATION,
            form_label=_("What it carries"),
            form_proposes=Tagging.DOT1Q,
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
        metadata=facts(
            column="requested_outer_vlan",
            label=_("Outer VLAN"),
            form_help=_("1–4094, or “any” for a free one, the same at both ends where possible"),
            form_proposes=ANY,
            api_help='`"any"` lets the portal choose a free VLAN. Left out or null for a whole port.',
            api_example=100,
            cell_meaning=_("1 to 4094, or “any” for one that is free; empty for a whole port"),
        ),
    )
    inner_vlan: int | None = field(
        default=None,
        metadata=facts(
            label=_("Inner VLAN"),
            least=None,
            change=ChangeKind.VLAN,
            form_help=_("1–4094"),
            form_unreadable=_("Enter a VLAN id from 1 to 4094."),
            api_help="From 1 to 4094; only for `qinq` and `dot1ad`.",
            cell_meaning=_("1 to 4094, only with qinq and dot1ad"),
        ),
    )
    exact_match: bool = field(
        default=True,
        metadata=facts(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSpec:
    """A line as ordered. Sizes are in bytes, rates in bit/s. The portal chooses bursts that are None.

    ``transport``: "auto" or the value of a Transport. The description does not belong to revisions: it is
    only a label, a change of it counts immediately, and specifications that differ in it are equal.
    """

    description: str = field(
        default="",
        compare=False,
        metadata=facts(
            label=_("Name or reference"),
            longest=100,
            change=ChangeKind.DESCRIPTION,
            form_help=_("If left empty, the line is named after its sites"),
            api_help="Your name for the line.",
            api_example="ZRH-AMS",
            cell_meaning=_("Name or reference: identifies a customer’s line when a table is sent again"),
            cell_example="Zürich–Amsterdam",
            exported=False,
        ),
    )
    a_end: EndSpec
    z_end: EndSpec
    svc_mtu: int = field(
        metadata=facts(
            label=_("Largest packet (MTU)"),
            unit="bytes",
            change=ChangeKind.SVC_MTU,
            form_help=_("In bytes: 1500 is usual on the Internet; the path may carry more"),
            form_proposes=1500,
            form_missing=_("Enter the size of the largest packet."),
            form_unreadable=format_lazy(
                _("Enter a whole number of bytes from {least} to {most}."),
                least=MIN_SVC_MTU,
                most=MAX_SVC_MTU,
            ),
            api_help="The largest IP packet that the line must carry, in bytes.",
            cell_meaning=_("The largest IP packet that is carried"),
            cell_example="1500",
        )
    )
    cir_bps: int = field(
        metadata=facts(
            label=_("Bandwidth (CIR)"),
            unit="bit/s",
            change=ChangeKind.BANDWIDTH,
            form_label=_("Bandwidth"),
            form_missing=_("Enter a bandwidth."),
            api_help="The rate that is reserved for you in both directions, in bit/s.",
            cell_meaning=_("The bandwidth that is booked"),
            cell_example="100000000",
            api_example=1_000_000_000,
        )
    )
    cbs_bytes: int | None = field(
        default=None,
        metadata=facts(
            column="requested_cbs_bytes",
            label=_("Committed burst (CBS)"),
            unit="bytes",
            change=ChangeKind.BANDWIDTH,
            form_help=_("In bytes; empty for 10 ms at the bandwidth"),
            form_unreadable=_("Enter a whole number of bytes, or nothing."),
            api_example=1_250_000,
            api_help="CBS in bytes, at least the largest frame. Null lets the portal choose: 10 ms at the"
            " rate, but at least 10 of the largest frames.",
            api_help_in_changes=True,
            cell_meaning=_("Burst; empty: calculated from the rate"),
            exported=False,
        ),
    )
    eir_bps: int = field(
        default=0,
        metadata=facts(
            label=_("Excess bandwidth (EIR)"),
            unit="bit/s",
            change=ChangeKind.BANDWIDTH,
            form_help=_("Forwarded beyond the bandwidth if capacity is free; not reserved"),
            api_help="Excess information rate in bit/s: traffic above the CIR up to this rate is forwarded"
            " if the network has capacity. It is not booked. 0 for none.",
            api_help_in_changes=True,
            cell_meaning=_("Excess rate, forwarded if capacity is free; empty: none"),
            cell_example="0",
            api_example=500_000_000,
        ),
    )
    ebs_bytes: int | None = field(
        default=None,
        metadata=facts(
            column="requested_ebs_bytes",
            label=_("Excess burst (EBS)"),
            unit="bytes",
            change=ChangeKind.BANDWIDTH,
            form_help=_("In bytes; empty for 10 ms at the excess bandwidth"),
            form_unreadable=_("Enter a whole number of bytes, or nothing."),
            api_example=625_000,
            api_help="EBS in bytes, at least the largest frame. Null lets the portal choose: 10 ms at the"
            " rate, but at least 10 of the largest frames.",
            api_help_in_changes=True,
            cell_meaning=_("Excess burst; empty: calculated from the rate"),
            exported=False,
        ),
    )
    transport: str = field(
        default=AUTO,
        metadata=facts(
            column="requested_transport",
            label=_("Requested transport"),
            choices=(AUTO, *(each.value for each in Transport)),
            change=ChangeKind.TRANSPORT,
            form_label=_("Transport"),
            form_help=_("Automatic picks the cheapest transport that fits the packet size and the routers"),
            api_help="The encapsulation of frames in the network. `auto` lets the portal choose one that"
            " carries `svc_mtu`.",
            form_proposes=AUTO,
            cell_meaning=_("How frames cross the network; empty: auto"),
            cell_example=AUTO,
            api_example=Transport.VXLAN4.value,
            exported=False,
            noc_chooses=True,
        ),
    )
    link_loss_forwarding: bool = field(
        default=False,
        metadata=facts(
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


LINE, END = properties_of(LineSpec), properties_of(EndSpec)
