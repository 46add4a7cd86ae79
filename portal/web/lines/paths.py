"""The path of a line through the backbone, as a drawing and in words."""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from portal.core.network.encapsulations import Transport
from portal.core.network.required_mtu import overhead, required_ip_mtu
from portal.inventory.models import Router
from portal.underlay.current_topology import current_topology, path_policy
from portal.underlay.path_mtu import path_check
from portal.underlay.topology import Link, Topology
from portal.vll.activation_test_procedure import Finding
from portal.vll.models import TunnelPath
from portal.vll.path_status import TIME, PathStatus
from portal.web.noc.map.svg_map import Drawing, Join, Point, drawing_of
from portal.web.page.badges import badge_markup
from portal.web.page.units import time


@dataclass(frozen=True, slots=True)
class Hop:
    """A link of the path.

    ``ip_mtu``: in bytes; None if unknown. ``spare``: the bytes by which ``ip_mtu`` exceeds the required MTU;
    negative if ``ip_mtu`` is too small. ``backup``: whether the link is used only after a failure.
    """

    name: str
    ip_mtu: int | None
    spare: int | None
    backup: bool


@dataclass(frozen=True, slots=True)
class LinePath:
    """The path of a line.

    * ``frame``: the largest carried frame in bytes. ``overhead``: the bytes that the tunnel adds.
    * ``required``: the IP MTU in bytes that the links need.
    * ``path_mtu``: the smallest IP MTU of the links in bytes; None if unknown.
    * ``drawing``: the links of the shortest paths; None without a path.
    """

    transport: Transport
    frame: int
    overhead: int
    required: int
    path_mtu: int | None
    hops: list[Hop]
    drawing: Drawing | None

    @property
    def margin(self) -> int | None:
        return None if self.path_mtu is None else self.path_mtu - self.required

    @property
    def shortfall(self) -> int | None:
        """The bytes by which the smallest MTU is too small; None if it is sufficient or unknown."""
        return -self.margin if self.margin is not None and self.margin < 0 else None


def line_path(
    *, a: Router, z: Router, transport: Transport, gre_key: bool, frame: int, now: datetime
) -> LinePath | None:
    """Return the path of a tunnel; None if both ends are on the same router.

    ``frame``: the largest carried frame in bytes. ``gre_key``: whether it is a GRE tunnel with a key.
    """
    policy = path_policy()
    required = required_ip_mtu(frame, transport, policy.mtu, gre_key=gre_key)
    if a.pk == z.pk or required is None or transport.family is None:
        return None
    topology = current_topology(now=now)
    report = path_check(
        topology, a.pk, z.pk, family=transport.family, any_single_failure=policy.survives_one_failure
    )
    hops = [_hop(topology, link, required, backup=link in report.used.backup) for link in report.links]
    return LinePath(
        transport=transport,
        frame=frame,
        overhead=overhead(transport, policy.mtu, gre_key=gre_key),
        required=required,
        path_mtu=report.path_mtu,
        hops=hops,
        drawing=_drawing(topology, a.pk, z.pk, report.used.primary, required),
    )


def _hop(topology: Topology, link: Link, required: int, *, backup: bool) -> Hop:
    ip_mtu = topology.ip_mtu(link)
    return Hop(link.name, ip_mtu, None if ip_mtu is None else ip_mtu - required, backup)


def _drawing(topology: Topology, a: int, z: int, links: tuple[Link, ...], required: int) -> Drawing | None:
    if not links:
        return None
    on_the_way = dict.fromkeys(side.router for link in links for side in (link.a, link.z))
    ends: dict[Hashable, str] = {a: _("A end"), z: _("Z end")}
    spots = [
        Point(
            router,
            topology.router(router).name,
            note=ends.get(router, ""),
            tone="info" if router in ends else "muted",
        )
        for router in on_the_way
    ]
    return drawing_of(spots, [_join(topology, link, required) for link in links], first=a)


def _join(topology: Topology, link: Link, required: int) -> Join:
    ip_mtu = topology.ip_mtu(link)
    label = _("MTU ?") if ip_mtu is None else _("MTU %(n)d") % {"n": ip_mtu}
    tone = "warning" if ip_mtu is None else "danger" if ip_mtu < required else "success"
    return Join(link.a.router, link.z.router, f"{link.name}: {label}", (label,), tone=tone)


register = template.Library()


@register.simple_tag
def path_state(path: TunnelPath) -> SafeString:
    """Return the badge of a path: the result of the newest test frames, or why no frames were sent."""
    if not path.probe_transport:
        return badge_markup(_("not probed"), "muted")
    if path.black_hole_since is not None:
        return badge_markup(_("MTU black hole"), "danger")
    if path.probed_at is None:
        built = "conflict" not in (path.a_answer, path.z_answer)
        return (
            badge_markup(_("not yet"), "muted") if built else badge_markup(_("probe in conflict"), "warning")
        )
    if path.finding == Finding.NOTHING_ARRIVES:
        return badge_markup(_("nothing arrives"), "danger")
    if path.finding:
        return badge_markup(_("frames lost"), "warning")
    return badge_markup(_("all arrive"), "success")


@register.simple_tag
def path_sentence(path: PathStatus) -> SafeString:
    """Return the sentence about a path's state as HTML, with its time in the usual format of pages."""
    sentence = conditional_escape(path.sentence)
    if path.since is None:
        return sentence
    return mark_safe(sentence.replace(TIME, time(path.since)))  # noqa: S308 - both are HTML
