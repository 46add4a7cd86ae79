"""Found lines: lines on routers that the portal does not manage, joined from the circuits of two routers.

Two circuits form one line if the tunnel of each leads to the other. Both tunnels then have the same
encapsulation, VNI (or GRE key) and pair of addresses. Routers may have equal tunnels in several tables. A
tunnel in the underlay table matches a tunnel in the other router's underlay table. A tunnel in another table
matches a tunnel in the table with the same number. A circuit within one router is a complete line.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import (
    BigIntegerField,
    Case,
    Exists,
    F,
    GenericIPAddressField,
    JSONField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextChoices,
    TextField,
    When,
)
from django.db.models.functions import Cast, Coalesce
from django.db.models.lookups import Exact
from django.utils.translation import gettext_lazy as _

from portal.core.db.row_conditions import is_one_of
from portal.core.network.encapsulations import Encapsulation, Family, Transport
from portal.core.network.vlan_tags import Tagging
from portal.inventory.models import ObservedCircuit, ObservedInterface, Router
from portal.inventory.queries import Filter

# VPP's operations that pop one and two tags on ingress, and push them on egress.
_POPS = {0: 0, 3: 1, 4: 2}
_LONGEST_TAG, _OUR_TAGS = 63, "longline:"


class Standing(TextChoices):
    """The status of a found line. If several apply, the first one counts."""

    ONE_SIDED = "one_sided", _("One-sided")
    ONE_DIRECTIONAL = "one_directional", _("One direction only")
    MISMATCHED = "mismatched", _("Mismatched")
    COMPLETE = "complete", _("Complete")


class Oddity(TextChoices):
    """Oddities of a found line, each with a sentence for users."""

    NO_FAR_END = (
        "no_far_end",
        _("{where} has a tunnel to {remote}, and no router reports the other end of it."),
    )
    OTHER_KEY = (
        "other_key",
        _("{where} has a tunnel to {remote} that has another VNI or GRE key there: {key}."),
    )
    CARRIES_NOTHING = (
        "carries_nothing",
        _("On {where}, {interface} is cross-connected to nothing: the line has no port there."),
    )
    BETWEEN_TUNNELS = "between_tunnels", _("{where} joins two tunnels, and has no port of this line.")
    ONE_WAY = (
        "one_way",
        _(
            "On {where}, frames that arrive on {missing_from} are not forwarded: the line carries one"
            " direction only."
        ),
    )
    SHUT = "shut", _("On {where}, {interface} is shut down.")
    KEEPS_TAGS = (
        "keeps_tags",
        _("On {where}, {interface} matches frames by VLAN tags, but does not remove these tags."),
    )
    PICKS_WIDELY = (
        "picks_widely",
        _("On {where}, {interface} matches frames by “any” or “default”, not by VLANs."),
    )
    NOT_STANDARD = (
        "not_standard",
        _("On {where}, {interface} has its own UDP port or mode, or VPP does not report its table."),
    )
    OTHER_TABLE = (
        "other_table",
        _("On {where}, {interface} is in table {table}, and the router's underlay is in table {wanted}."),
    )
    PICKS_OTHERWISE = (
        "picks_otherwise",
        _(
            "On {where}, {interface} matches frames by a single 802.1ad tag, which the portal "
            "does not support."
        ),
    )
    ODD_TAG = (
        "odd_tag",
        _(
            "On {where}, {interface} has a tag that could not be restored later: it has another character"
            " set, or begins with “longline:”."
        ),
    )
    OTHER_MTU = "other_mtu", _("The ports have different MTUs: {a} and {z} bytes ({where}).")
    POLICED = "policed", _("On {where}, {interface} has a foreign policer, but a line here has its own.")


_STANDING_OF = {
    Oddity.NO_FAR_END: Standing.ONE_SIDED,
    Oddity.OTHER_KEY: Standing.MISMATCHED,
    Oddity.CARRIES_NOTHING: Standing.ONE_SIDED,
    Oddity.ONE_WAY: Standing.ONE_DIRECTIONAL,
    Oddity.POLICED: Standing.COMPLETE,
}


# Subqueries for the circuit of an outer query: the circuits of other routers whose tunnels lead back to this
# circuit. _PARTNERS also have the same VNI or key. _BEST_PARTNER prefers a tunnel in the matching table.
_AT_THE_FAR_END = ObservedCircuit.objects.filter(
    encapsulation=OuterRef("encapsulation"), local=OuterRef("remote"), remote=OuterRef("local")
).exclude(router=OuterRef("router"))
_PARTNERS = _AT_THE_FAR_END.filter(key=OuterRef("key"))
_REPORTED_TABLE = Coalesce(
    "sides__near__tunnel__table", "sides__far__tunnel__table", output_field=JSONField()
)
_TABLE = Coalesce(Cast(_REPORTED_TABLE, BigIntegerField()), 0)
_IN_UNDERLAY = Case(When(Exact(_TABLE, F("router__underlay_table")), then=True), default=False)
_BEST_PARTNER = (
    _PARTNERS.annotate(
        alike=Exact(_IN_UNDERLAY, OuterRef("in_underlay")), same=Exact(_TABLE, OuterRef("table"))
    )
    .order_by("-alike", "-same", "pk")
    .values("pk")[:1]
)


@dataclass(frozen=True, slots=True)
class FoundEnd:
    """An attachment circuit: ``port``, its IP MTU (None: not reported), and how it selects frames."""

    router: Router
    interface: str
    tag: str
    port: str
    tagging: Tagging | None
    outer_vlan: int | None
    inner_vlan: int | None
    exact_match: bool
    link_up: bool
    policed: bool
    ip_mtu: int | None
    # The tag of the tunnel; None without a tunnel.
    tunnel_tag: str | None
    tunnel_address: str | None


@dataclass(frozen=True, slots=True)
class Odd:
    """An oddity. ``where``: the router or routers that have it."""

    code: Oddity
    where: str
    facts: dict[str, Any]

    @property
    def sentence(self) -> str:
        """Return the sentence in the reader's language."""
        return self.code.label.format(where=self.where, **self.facts)


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A found line. ``id`` is the id of its first circuit.

    ``a``, ``z``: None for an unknown attachment circuit. ``transport``: None for a circuit between two
    tunnels. ``key``: the VNI or GRE key; None without one.
    """

    id: int
    transport: Transport | None
    key: int | None
    a: FoundEnd | None
    z: FoundEnd | None
    odd: tuple[Odd, ...]

    @property
    def ends(self) -> list[FoundEnd]:
        """Return the known ends."""
        return [end for end in (self.a, self.z) if end]

    @property
    def hindrances(self) -> list[Odd]:
        """Return the oddities that prevent an adoption without changes.

        Different MTUs do not prevent an adoption: the adoption order checks whether the line's packets fit.
        """
        return [each for each in self.odd if each.code is not Oddity.OTHER_MTU]

    @property
    def may_be_adopted(self) -> bool:
        return not self.hindrances

    @property
    def standing(self) -> Standing:
        of_odd = {_STANDING_OF.get(each.code, Standing.MISMATCHED) for each in self.odd}
        return next((each for each in Standing if each in of_odd), Standing.COMPLETE)


def found_circuits() -> QuerySet[Any]:
    """Return the first circuit of each found line, by id. ``partner``: the second circuit's id, or None."""
    return (
        ObservedCircuit.objects.filter(router__retired_at__isnull=True)
        .annotate(in_underlay=_IN_UNDERLAY, table=_TABLE)
        .annotate(partner=Subquery(_BEST_PARTNER))
        .filter(Q(partner__isnull=True) | Q(partner__gt=F("pk")))
        .select_related("router__site")
        .order_by("pk")
    )


def circuits_touching(circuits: QuerySet[Any], router: str) -> QuerySet[Any]:
    """Narrow ``found_circuits`` to lines with an end on the router of that name."""
    return _either(circuits, Q(router__name=router))


def circuits_at(circuits: QuerySet[Any], places: Collection[tuple[str, str]]) -> QuerySet[Any]:
    """Narrow to lines with an end at one of these (router name, interface name) pairs.

    The result may include a few other lines.
    """
    routers, interfaces = {router for router, _ in places}, {interface for _, interface in places}
    there = is_one_of("near", interfaces, TextField()) | is_one_of("far", interfaces, TextField())
    return _either(circuits, Q(router__name__in=routers) & there)


def circuits_named(circuits: QuerySet[Any], text: str) -> QuerySet[Any]:
    """Narrow to lines with this text in the name of a router or an interface, or in a tag."""
    columns = ("router__name", "near", "far", "sides__near__tag", "sides__far__tag")
    return _either(circuits, reduce(or_, (Q(**{f"{each}__icontains": text}) for each in columns)))


def circuits_where(circuits: QuerySet[Any], wanted: Callable[[FoundLine], bool]) -> QuerySet[Any]:
    """Narrow to lines for which ``wanted`` is true.

    This reads all found lines, which takes less than a second for a thousand lines.
    """
    return circuits.filter(_with_ids(line.id for line in found_lines(circuits) if wanted(line)))


def _circuits_with_standing(circuits: QuerySet[Any], standing: str) -> QuerySet[Any]:
    if standing == _ADOPTABLE:
        return circuits_where(circuits, lambda line: line.may_be_adopted)
    return circuits_where(circuits, lambda line: line.standing == standing)


# A value of the filter on pages: the line can be adopted without changes.
_ADOPTABLE = "adoptable"
FOUND_LINE_FILTERS = (
    Filter(
        name="standing",
        value_type=Standing,
        label=_("Status"),
        options=lambda: [(_ADOPTABLE, _("Can be taken over")), *Standing.choices],
        narrow=_circuits_with_standing,
    ),
    Filter(name="router", about="The name of a router at either end.", narrow=circuits_touching),
    Filter(
        name="odd",
        value_type=Oddity,
        narrow=lambda circuits, value: circuits_where(
            circuits, lambda line: any(each.code == value for each in line.odd)
        ),
    ),
)


def _with_ids(ids: Iterable[int]) -> Q:
    return is_one_of("pk", ids, BigIntegerField())


def _either(circuits: QuerySet[Any], condition: Q) -> QuerySet[Any]:
    """Narrow to lines whose first or second circuit satisfies the condition."""
    return circuits.filter(condition | Q(partner__in=ObservedCircuit.objects.filter(condition).values("pk")))


def found_lines(circuits: Iterable[Any]) -> Iterator[FoundLine]:
    """Yield the lines of these ``found_circuits``, in their order."""
    firsts = list(circuits)
    partners = _with_ids(each.partner for each in firsts if each.partner is not None)
    found = ObservedCircuit.objects.select_related("router__site").filter(partners)
    seconds = {each.pk: each for each in found}
    alone = {each.pk for each in firsts if each.partner is None and each.encapsulation}
    others = _other_keys(alone)
    mtus = _mtus([*firsts, *seconds.values()])
    for first in firsts:
        second = None if first.partner is None else seconds.get(first.partner)
        yield _line(first, second, others.get(first.pk), mtus)


def _line(
    first: ObservedCircuit,
    second: ObservedCircuit | None,
    other_key: int | None,
    mtus: dict[tuple[int, str], int | None],
) -> FoundLine:
    odd = [*_oddities(first), *(_oddities(second) if second else ())]
    if not first.encapsulation:
        ends = [_end(first, side, mtus) for side in _sides(first)]
        a, z = [*ends, None, None][:2]
        tunnels = [side for side in _sides(first) if side["tunnel"]]
        transport = None if tunnels else Transport.L2XC
        if tunnels:
            odd.append(Odd(Oddity.BETWEEN_TUNNELS, first.router.name, {}))
        key = None
    else:
        a = _attachment(first, mtus)
        z = _attachment(second, mtus) if second else None
        family = Family.V6 if ":" in str(first.local) else Family.V4
        transport, key = Transport.of(Encapsulation(first.encapsulation), family), first.key or None
        if second is None:
            code = Oddity.NO_FAR_END if other_key is None else Oddity.OTHER_KEY
            odd.append(Odd(code, first.router.name, {"remote": first.remote, "key": other_key}))
    if a and z and a.ip_mtu and z.ip_mtu and a.ip_mtu != z.ip_mtu:
        odd.append(Odd(Oddity.OTHER_MTU, f"{a.router.name}, {z.router.name}", {"a": a.ip_mtu, "z": z.ip_mtu}))
    return FoundLine(first.pk, transport, key, a, z, tuple(odd))


def _oddities(circuit: ObservedCircuit) -> Iterator[Odd]:
    sides, where = circuit.sides, circuit.router.name
    if sides["far"] is None:
        yield Odd(Oddity.CARRIES_NOTHING, where, {"interface": circuit.near})
    elif not (sides["out"] and sides["in"]):
        yield Odd(Oddity.ONE_WAY, where, {"missing_from": circuit.far if sides["out"] else circuit.near})
    for side in _sides(circuit):
        name = {"interface": side["interface"]}
        attachment, tunnel = side["attachment"], side["tunnel"]
        if not side["admin_up"]:
            yield Odd(Oddity.SHUT, where, name)
        if tunnel and not tunnel["standard"]:
            yield Odd(Oddity.NOT_STANDARD, where, name)
        elif tunnel and tunnel.get("table", 0) != circuit.router.underlay_table:
            tables = {"table": tunnel.get("table", 0), "wanted": circuit.router.underlay_table}
            yield Odd(Oddity.OTHER_TABLE, where, name | tables)
        if not _can_be_given_back(side["tag"] or ""):
            yield Odd(Oddity.ODD_TAG, where, name)
        if attachment and attachment["wide"]:
            yield Odd(Oddity.PICKS_WIDELY, where, name)
        elif attachment and _tagging(attachment) is None:
            yield Odd(Oddity.PICKS_OTHERWISE, where, name)
        elif attachment and _POPS.get(side["rewrite"]) != attachment["tags"]:
            yield Odd(Oddity.KEEPS_TAGS, where, name)
        if attachment and attachment["policed"]:
            yield Odd(Oddity.POLICED, where, name)


def _can_be_given_back(tag: str) -> bool:
    """Return whether an agent could write the tag back.

    VPP's tags have at most 63 bytes. An agent does not write a foreign tag that looks like the agent's tags.
    """
    return len(tag.encode()) <= _LONGEST_TAG and "\ufffd" not in tag and not tag.startswith(_OUR_TAGS)


def _sides(circuit: ObservedCircuit) -> list[dict[str, Any]]:
    return [side for side in (circuit.sides["near"], circuit.sides["far"]) if side is not None]


def _attachment(circuit: ObservedCircuit, mtus: dict[tuple[int, str], int | None]) -> FoundEnd | None:
    return next((_end(circuit, side, mtus) for side in _sides(circuit) if side["attachment"]), None)


def _end(
    circuit: ObservedCircuit, side: dict[str, Any], mtus: dict[tuple[int, str], int | None]
) -> FoundEnd | None:
    at = side["attachment"]
    if at is None:
        return None
    return FoundEnd(
        router=circuit.router,
        interface=side["interface"],
        tag=side["tag"] or "",
        port=at["port"],
        tagging=_tagging(at),
        outer_vlan=at["outer"] if at["tags"] else None,
        inner_vlan=at["inner"] if at["tags"] == 2 else None,
        exact_match=at["exact"] or not at["tags"],
        link_up=at["link_up"],
        policed=at["policed"],
        ip_mtu=mtus.get((circuit.router_id, at["port"])),
        tunnel_tag=next((each["tag"] or "" for each in _sides(circuit) if each["tunnel"]), None),
        tunnel_address=circuit.local,
    )


def _tagging(at: dict[str, Any]) -> Tagging | None:
    """Return the tagging; None if the portal supports no lines with these tags."""
    match at["wide"], at["tags"], at["dot1ad"]:
        case False, 0, _:
            return Tagging.UNTAGGED
        case False, 1, False:
            return Tagging.DOT1Q
        case False, 2, False:
            return Tagging.QINQ
        case False, 2, True:
            return Tagging.DOT1AD
    return None


def _mtus(circuits: Iterable[ObservedCircuit]) -> dict[tuple[int, str], int | None]:
    """Return the IP MTU by router and port."""
    places = {
        (each.router_id, side["attachment"]["port"])
        for each in circuits
        for side in _sides(each)
        if side["attachment"]
    }
    rows = ObservedInterface.objects.filter(
        router_id__in={router for router, _ in places}, name__in={port for _, port in places}
    )
    return {(router, name): mtu for router, name, mtu in rows.values_list("router_id", "name", "ip_mtu")}


def _other_keys(alone: Collection[int]) -> dict[int, int]:
    """Return, by the id of a circuit without a partner, the key of its other half."""
    here = ObservedCircuit.objects.filter(_with_ids(alone)).values_list("local", "remote").distinct()
    ends = {address for tunnel in here for address in tunnel}
    between = Q(*(is_one_of(column, ends, GenericIPAddressField()) for column in ("local", "remote")))
    return keys_at_the_far_end(ObservedCircuit.objects.filter(between).exclude(Exists(_PARTNERS)))


def keys_at_the_far_end(halves: Iterable[ObservedCircuit]) -> dict[int, int]:
    """Return, by the id of a half, the key of its other half. Halves without a clear match are left out.

    ``halves``: all circuits without a partner, at both ends of the tunnels. Two halves match if they are the
    only two between their addresses with the same VLANs. If exactly two halves are then left between two
    addresses, they match too.
    """
    left = {each.pk: each for each in halves}
    found: dict[int, int] = {}
    for name in (_tunnel_and_vlans, _tunnel):
        for one, two in _pairs(left.values(), name):
            found |= {one.pk: two.key or 0, two.pk: one.key or 0}
        left = {pk: each for pk, each in left.items() if pk not in found}
    return found


def _tunnel(half: ObservedCircuit) -> Hashable:
    return half.encapsulation, frozenset((half.local, half.remote))


def _tunnel_and_vlans(half: ObservedCircuit) -> Hashable | None:
    for side in (half.sides["near"], half.sides["far"]):
        if side and (at := side["attachment"]):
            return _tunnel(half), at["tags"], at["dot1ad"], at["outer"], at["inner"]
    return None


def _pairs(
    halves: Iterable[ObservedCircuit], name: Callable[[ObservedCircuit], Hashable | None]
) -> Iterator[tuple[ObservedCircuit, ObservedCircuit]]:
    """Yield the pairs of circuits at different ends that share a ``name`` which no other circuit has."""
    named: dict[Hashable, list[ObservedCircuit]] = defaultdict(list)
    for each in halves:
        named[name(each)].append(each)
    named.pop(None, None)
    for those in named.values():
        if len(those) == 2 and those[0].local == those[1].remote:
            yield those[0], those[1]
