"""The rows of an intent, read in one query for any number of VLLs on the router."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, OuterRef, QuerySet, Subquery

from portal.core.bandwidth_profile import Policing
from portal.core.line_label import line_label
from portal.core.vlan_tags import Tagging
from portal.inventory.models import Router
from portal.vll.models import Vll, VllEnd, VllTombstone
from portal.vll.operations.link_loss_forwarding import forwards_link_loss
from portal.vll.policing_status import profile_of
from portal.vll.states import AdminStatus, Handover
from portal.vll.unconfirmed_ends import ADDS_PENDING_APPROVAL, GONE, unconfirmed_ends
from provisioning.intent_document import EndKey, EndRow, Release

_END = (
    "side",
    "status",
    "status_revision",
    "tagging",
    "outer_vlan",
    "inner_vlan",
    "exact_match",
    "tunnel_address",
    "access_tag_before",
    "tunnel_tag_before",
)
# The router's capabilities, and the FIB table of its tunnels.
_OF_ROUTER = ("policing", "line_tests", "adoption", "labels", "keeps_down", "underlay_table")
_OF_END = ("interface", "far_address", "customer", "shut_side")
_LINE = (
    "revision",
    "wanted_present",
    "admin_status",
    "encapsulation",
    "family",
    "vni",
    "gre_key",
    "frame",
    "cir_bps",
    "eir_bps",
    "requested_cbs_bytes",
    "requested_ebs_bytes",
    "handover",
    "lifecycle",
    "link_loss_forwarding",
    "description",
)


@dataclass(frozen=True, slots=True)
class RouterRows:
    """The rows of a router's intent.

    ``moved_away``: ends that have left the router and whose removal it has not confirmed.
    """

    ends: tuple[EndRow, ...]
    moved_away: tuple[EndKey, ...]


def router_rows(router: Router) -> RouterRows:
    """Return every end on this router, except the ends of finished lines and of new lines pending approval.

    Ends and tombstones come from one statement, which reads everything committed before it began. An end that
    moves during the statement is therefore either among the ends or among the tombstones, and never in both.
    """
    ends, left = _ends_on(router).query.sql_with_params(), _left(router).query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(_IN_ONE.format(ends=ends[0], left=left[0]), [*ends[1], *left[1]])
        rows = cursor.fetchall()
    wanted = [json.loads(end) for end, _ in rows if end is not None]
    gone = [json.loads(key) for _, key in rows if key is not None]
    # An agent without adoption would refuse the whole document if it contained ends to take over or to
    # release. The agent leaves ends that are not in the document as they are, and reports them as
    # quarantined.
    return RouterRows(
        ends=tuple(_row(end) for end in wanted if end["adoption"] or not _is_handed_over(end)),
        moved_away=tuple(_key(key) for key in gone if key["adoption"] or not key["release"]),
    )


def _is_handed_over(row: dict[str, Any]) -> bool:
    return row["line_handover"] in (Handover.ADOPT, Handover.RELEASE)


_IN_ONE = """
SELECT to_jsonb(wanted)::text, NULL FROM ({ends}) AS wanted
UNION ALL SELECT NULL, to_jsonb(gone)::text FROM ({left}) AS gone
"""


def end_rows(router: Router) -> list[EndRow]:
    """Return only the ends of ``router_rows``."""
    return list(router_rows(router).ends)


def _ends_on(router: Router) -> QuerySet[VllEnd, Any]:
    """Return the columns that ``_row`` reads, each under its own name."""
    far = VllEnd.objects.filter(vll=OuterRef("vll")).exclude(side=OuterRef("side"))
    of_line = {f"line_{name}": F(f"vll__{name}") for name in _LINE}
    here = VllEnd.objects.filter(port__router=router)
    ends: QuerySet[VllEnd, Any] = (
        here.exclude(vll__lifecycle__in=GONE)
        .exclude(vll__in=ADDS_PENDING_APPROVAL.values("vll"))
        .annotate(
            interface=F("port__interface"),
            far_address=Subquery(far.values("tunnel_address")),
            underlay_table=F("port__router__underlay_table"),
            policing=F("port__router__observed__policing"),
            line_tests=F("port__router__observed__line_tests"),
            adoption=F("port__router__observed__adoption"),
            keeps_down=F("port__router__observed__link_loss_forwarding"),
            shut_side=F("vll__forwarded_link_loss__shut_side"),
            labels=F("port__router__observed__labels"),
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


def _key(row: dict[str, Any]) -> EndKey:
    release = Release(row["access_tag"] or None, row["tunnel_tag"] or None) if row["release"] else None
    return EndKey(UUID(row["vll_id"]), row["side"], row["revision"], present=False, release=release)


def _row(row: dict[str, Any]) -> EndRow:
    end = VllEnd(**{name: row[name] for name in _END})
    vll = Vll(id=UUID(row["vll_id"]), **{name: row[f"line_{name}"] for name in _LINE})
    tunnelled = vll.family is not None
    adopt = vll.handover == Handover.ADOPT
    return EndRow(
        vll=vll.pk,
        side=end.side,
        revision=vll.revision,
        wanted_present=vll.wanted_present,
        confirmed_removed=end.status == VllEnd.Status.REMOVED and end.status_revision == vll.revision,
        admin_up=vll.admin_status != AdminStatus.DOWN,
        frame=vll.frame,
        interface=row["interface"],
        tagging=end.tagging,
        outer_vlan=end.outer_vlan,
        inner_vlan=end.inner_vlan,
        exact_match=end.exact_match,
        encapsulation=vll.encapsulation,
        family=vll.family,
        local=end.tunnel_address if tunnelled else None,
        remote=row["far_address"] if tunnelled else None,
        vni=vll.vni,
        gre_key=vll.gre_key,
        table=row["underlay_table"] if tunnelled else 0,
        bandwidth=None if adopt else profile_of(vll, end, Policing(row["policing"] or Policing.NONE)),
        testing=vll.admin_status == AdminStatus.TESTING and bool(row["line_tests"]),
        adopt=adopt,
        uni_link_down=row["shut_side"] == end.side
        and bool(row["keeps_down"])
        and end.tagging == Tagging.UNTAGGED
        and vll.wanted_present
        and forwards_link_loss(vll),
        label=_label(vll, row["customer"]) if row["labels"] else None,
        release=_release(end) if vll.handover == Handover.RELEASE else None,
    )


def _label(vll: Vll, customer: str) -> str:
    return line_label(vll.pk, description=vll.description, customer=customer, customer_id=vll.customer_id)


def _release(end: VllEnd) -> Release:
    return Release(end.access_tag_before or None, end.tunnel_tag_before or None)
