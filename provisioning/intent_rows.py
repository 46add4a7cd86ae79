"""The rows of an intent, read in one query for any number of VLLs on the router, and the labels of lines.

SNMP reports a label as the ifAlias of a line's interfaces.
"""

import json
import re
import unicodedata
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from django.db.models import F, OuterRef, QuerySet, Subquery

from portal.core.db.statements import rows_of
from portal.core.network.bandwidth_profile import BandwidthProfile, Policing, bandwidth_profile
from portal.core.network.vlan_tags import Tagging
from portal.inventory.models import ObservedRouter, Router
from portal.vll.line_revision import ALLOCATED_END, REVISION
from portal.vll.models import VllEnd, VllTombstone
from portal.vll.operations.link_loss_forwarding import forwards_link_loss
from portal.vll.queries import ADDS_PENDING_APPROVAL, GONE, unconfirmed_ends
from portal.vll.states import AdminStatus, Handover
from provisioning.intent_document import EndKey, IntendedEnd, Release, end_members

# The limit of agents (agent/internal/intent/decode.go) and of an ifAlias (RFC 2863).
LONGEST = 64
_LONGEST_CUSTOMER = 20
# Letters that Unicode does not decompose into a base letter and a mark.
_SPELLED = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d",
     "Đ": "D", "–": "-", "—": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "„": '"'}
)  # fmt: skip
# Characters that are replaced in names, because LibreNMS ends the customer's name at a colon or a bracket.
_MARKS = str.maketrans(dict.fromkeys("()[]{}:", " "))
# The suffix that ``_name_of`` appends. A name that already ends like this gets a suffix too.
_NUMBERED = re.compile(r"#[0-9]+\Z")


def line_label(vll: UUID, *, description: str, customer: str, customer_id: int) -> str:
    """Return the label: customer, description and the first 8 digits of the line's id.

    The label has at most 64 printable ASCII characters, such as ``Cust: ACME (Office to mine) {6f0b2c52}``.
    LibreNMS recognises this form (docs.librenms.org, Interface Description Parsing). It groups lines by the
    customer's name.
    """
    label = f"Cust: {_name_of(customer, customer_id)} {{{str(vll)[:8]}}}"
    what = _plain(description)[: LONGEST - len(label) - len("() ")].strip()
    return label.replace("{", f"({what}) {{") if _has_letters(what) else label


def _name_of(customer: str, customer_id: int) -> str:
    """Return the customer's name for labels: the same in all labels of a customer, and unique per customer.

    If the name is too long or is not plain ASCII, it is shortened, and the customer's id follows:
    ``Transcontinental #17``. If no letter or digit remains, the result is ``Customer #17``.
    """
    name = _plain(customer)
    if name == customer and len(name) <= _LONGEST_CUSTOMER and not _NUMBERED.search(name):
        return name
    number = f" #{customer_id}"
    kept = name.replace("?", " ") if "?" not in customer else name
    kept = " ".join(kept.split())[: _LONGEST_CUSTOMER - len(number)].strip()
    return (kept if _has_letters(kept) else "Customer") + number


def _has_letters(text: str) -> bool:
    return any(each.isalnum() for each in text)


def _plain(text: str) -> str:
    """Return the text as one line of ASCII.

    Letters lose their accents. A question mark replaces each character that ASCII cannot express.
    """
    plain = unicodedata.normalize("NFKD", text.translate(_SPELLED))
    letters = (letter for letter in plain if not unicodedata.combining(letter))
    ascii_alone = "".join(
        letter if " " <= letter <= "~" else " " if letter.isspace() else "?" for letter in letters
    )
    return " ".join(ascii_alone.translate(_MARKS).split())


_END = (
    *(each.column for each in ALLOCATED_END if each.name not in ("port", "outer_vlan")),
    *("side", "status", "status_revision", "access_tag_before", "tunnel_tag_before"),
)
# The router's capabilities, and the FIB table of its tunnels, with their paths from the router.
_OF_ROUTER = {
    "line_tests": "observed__line_tests",
    "adoption": "observed__adoption",
    "underlay_table": "underlay_table",
    **{f"router_{name}": f"observed__{name}" for name in ObservedRouter.IN_INTENTS},
}
_OF_END = ("interface", "far_address", "customer", "shut_side")
# Agents do not need these values, because others follow from them.
_NOT_SENT = ("svc_mtu", "transport", "decommission_at")
_LINE = (
    *(each.column for each in REVISION if each.name not in _NOT_SENT),
    *("revision", "wanted_present", "handover", "lifecycle", "description", "customer_id"),
)
_ACCESS = ("interface", "tagging", "outer_vlan", "inner_vlan", "exact_match")


@dataclass(frozen=True, slots=True)
class RouterRows:
    """The rows of a router's intent.

    ``moved_away``: ends that have left the router and whose removal it has not confirmed.
    """

    ends: tuple[IntendedEnd, ...]
    moved_away: tuple[EndKey, ...]


def router_rows(router: Router) -> RouterRows:
    """Return every end on this router, except the ends of finished lines and of new lines pending approval.

    Ends and tombstones come from one statement, which reads everything committed before it began. An end that
    moves during the statement is therefore either among the ends or among the tombstones, and never in both.
    """
    ends, left = _ends_on(router).query.sql_with_params(), _left(router).query.sql_with_params()
    rows = rows_of(_IN_ONE.format(ends=ends[0], left=left[0]), [*ends[1], *left[1]])
    wanted = [json.loads(end, object_hook=_row) for end, _ in rows if end is not None]
    gone = [json.loads(key, object_hook=_row) for _, key in rows if key is not None]
    # An agent without adoption would refuse the whole document if it contained ends to take over or to
    # release. The agent leaves ends that are not in the document as they are, and reports them as
    # quarantined.
    return RouterRows(
        ends=tuple(_end(row) for row in wanted if row.adoption or row.handover not in _HANDED_OVER),
        moved_away=tuple(_key(row) for row in gone if row.adoption or not row.release),
    )


_HANDED_OVER = (Handover.ADOPT, Handover.RELEASE)
_IN_ONE = """
SELECT to_jsonb(wanted)::text, NULL FROM ({ends}) AS wanted
UNION ALL SELECT NULL, to_jsonb(gone)::text FROM ({left}) AS gone
"""


def _ends_on(router: Router) -> QuerySet[VllEnd, Any]:
    """Return the columns that ``_end`` reads, each under its own name."""
    far = VllEnd.objects.filter(vll=OuterRef("vll")).exclude(side=OuterRef("side"))
    of_line = {name: F(f"vll__{name}") for name in _LINE}
    of_router = {name: F(f"port__router__{path}") for name, path in _OF_ROUTER.items()}
    here = VllEnd.objects.filter(port__router=router)
    ends: QuerySet[VllEnd, Any] = (
        here.exclude(vll__lifecycle__in=GONE)
        .exclude(vll__in=ADDS_PENDING_APPROVAL.values("vll"))
        .annotate(
            interface=F("port__interface"),
            far_address=Subquery(far.values("tunnel_address")),
            **of_router,
            shut_side=F("vll__forwarded_link_loss__shut_side"),
            customer=F("vll__customer__name"),
            **of_line,
        )
        .values("vll_id", *_END, *_OF_ROUTER, *_OF_END, *of_line)
    )
    return ends


def _left(router: Router) -> QuerySet[VllTombstone, Any]:
    columns = ("vll_id", "side", "revision", "release", "access_tag", "tunnel_tag")
    here = VllTombstone.objects.filter(router=router)
    left: QuerySet[VllTombstone, Any] = here.annotate(adoption=F("router__observed__adoption")).values(
        *columns, "adoption"
    )
    return left


def unconfirmed_keys(router: Router) -> frozenset[EndKey]:
    """Return the ends that this router has not confirmed. Every document must contain them until then."""
    rows = unconfirmed_ends().filter(port__router=router)
    return frozenset(
        EndKey(*values) for values in rows.values_list("vll", "side", "vll__revision", "vll__wanted_present")
    ) | frozenset(
        EndKey(*values, present=False)
        for values in VllTombstone.objects.filter(router=router).values_list("vll", "side", "revision")
    )


def _row(columns: dict[str, Any]) -> SimpleNamespace:
    """Return a row with its columns as attributes."""
    return SimpleNamespace(**columns)


def _key(row: Any) -> EndKey:
    release = Release(row.access_tag or None, row.tunnel_tag or None) if row.release else None
    return EndKey(UUID(row.vll_id), row.side, row.revision, present=False, release=release)


def _end(row: Any) -> IntendedEnd:
    tunnelled, adopt = row.family is not None, row.handover == Handover.ADOPT
    policed = not adopt and Policing(row.router_policing or Policing.NONE).covers(Tagging(row.tagging))
    can_be_shut = row.router_link_loss_forwarding and row.tagging == Tagging.UNTAGGED and row.wanted_present
    members = end_members(
        admin_up=row.admin_status != AdminStatus.DOWN,
        frame=row.frame,
        access={name: getattr(row, name) for name in _ACCESS},
        transport={
            "encapsulation": row.encapsulation,
            "family": row.family,
            "local": row.tunnel_address if tunnelled else None,
            "remote": row.far_address if tunnelled else None,
            "vni": row.vni,
        },
        gre_key=row.gre_key,
        table=row.underlay_table if tunnelled else 0,
        bandwidth=_profile(row) if policed else None,
        testing=row.admin_status == AdminStatus.TESTING and bool(row.line_tests),
        adopt=adopt,
        uni_link_down=can_be_shut and row.shut_side == row.side and forwards_link_loss(row),
        label=_label(row) if row.router_labels else None,
    )
    release = Release(row.access_tag_before or None, row.tunnel_tag_before or None)
    return IntendedEnd(
        vll=UUID(row.vll_id),
        side=row.side,
        revision=row.revision,
        wanted_present=row.wanted_present,
        confirmed_removed=row.status == VllEnd.Status.REMOVED and row.status_revision == row.revision,
        members=members,
        release=release if row.handover == Handover.RELEASE else None,
    )


def _profile(row: Any) -> BandwidthProfile:
    return bandwidth_profile(
        cir_bps=row.cir_bps,
        frame=row.frame,
        eir_bps=row.eir_bps,
        cbs_bytes=row.requested_cbs_bytes,
        ebs_bytes=row.requested_ebs_bytes,
    )


def _label(row: Any) -> str:
    return line_label(
        UUID(row.vll_id), description=row.description, customer=row.customer, customer_id=row.customer_id
    )
