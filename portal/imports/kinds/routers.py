"""Imports of routers."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.imports import cells
from portal.imports.kinds.kind import Actor, Batch, Claim, Column, Kind, RowValues, named, names
from portal.inventory.models import Router, Site
from portal.inventory.operations import router_create

_UNIQUE = ("name", "loopback4", "loopback6", "agent_url")


class Routers(Kind):
    slug = "routers"
    title = _("Routers")
    about = _("Import their sites first. Enrol each router afterwards, on its page.")
    columns = (
        Column(
            name="name",
            read=cells.router_name,
            meaning=_("Cannot be changed: certificates are issued to this name"),
            example="rhino",
            required=True,
        ),
        Column(name="site", read=cells.text(), meaning=_("The site’s name"), example="Zürich", required=True),
        Column(
            name="loopback4",
            read=cells.address(4),
            meaning=_("Where tunnels end, without prefix length"),
            example="10.255.0.1",
        ),
        Column(
            name="loopback6",
            read=cells.address(6),
            meaning=_("Where tunnels end, without prefix length"),
            example="2001:db8:255::1",
        ),
        Column(
            name="underlay_table",
            read=cells.whole,
            meaning=_("VPP’s table with loopbacks and backbone links; empty: 0"),
            example="0",
        ),
        Column(
            name="agent_url",
            read=cells.https_url,
            meaning=_("Empty for a router that only carries traffic"),
            example="https://rhino.example.net:9443",
        ),
        Column(
            name="cpu",
            read=cells.text(50),
            meaning=_("CPU model, used to estimate capacity"),
            example="EPYC 7313P",
        ),
        Column(
            name="cores", read=cells.whole, meaning=_("Cores that forward packets; empty: 1"), example="4"
        ),
        Column(
            name="line_test_pps",
            read=cells.whole,
            meaning=_("The most that an activation test sends; empty: the portal’s default"),
            unit=_("frames/s"),
            example="10000",
        ),
    )

    def claims(self, values: RowValues) -> Iterator[Claim]:
        for column in _UNIQUE:
            if column in values:
                yield Claim(column, values[column])

    def open(self, rows: Sequence[RowValues]) -> Batch:
        return _Batch(rows)


class _Batch(Batch):
    def __init__(self, rows: Sequence[RowValues]) -> None:
        self._sites = {site.name: site for site in Site.objects.filter(name__in=names(rows, "site"))}
        there = Router.objects.filter(name__in=names(rows, "name"), retired_at__isnull=True)
        self._there = {router.name: router for router in there.select_related("site")}

    def find(self, values: RowValues) -> Mapping[str, Any] | None:
        router = self._there.get(values["name"])
        if router is None:
            return None
        facts = (column.name for column in Routers.columns if column.name != "site")
        return {"site": router.site.name} | {name: getattr(router, name) for name in facts}

    def make(self, values: RowValues, *, actor: Actor, now: datetime) -> None:
        site = named(self._sites, values, "site", "site")
        router_create(**{**values, "site": site}, user=actor.user, now=now)
