"""Imports of sites."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.imports import cells
from portal.imports.kinds.kind import Actor, Batch, Column, Kind, RowValues, names
from portal.inventory.models import Site
from portal.inventory.operations import site_create


class Sites(Kind):
    slug = "sites"
    title = _("Sites")
    about = _("Points of presence: the locations of routers.")
    columns = (
        Column(name="name", read=cells.text(), meaning=_("The site’s name"), example="Zürich", required=True),
        Column(
            name="latitude",
            read=cells.degrees,
            meaning=_("North is positive; enter latitude and longitude, or neither"),
            unit=_("degrees"),
            example="47.3769",
        ),
        Column(
            name="longitude",
            read=cells.degrees,
            meaning=_("East is positive"),
            unit=_("degrees"),
            example="8.5417",
        ),
    )

    def open(self, rows: Sequence[RowValues]) -> Batch:
        return _Batch(rows)


class _Batch(Batch):
    def __init__(self, rows: Sequence[RowValues]) -> None:
        self._there = {site.name: site for site in Site.objects.filter(name__in=names(rows, "name"))}

    def find(self, values: RowValues) -> Mapping[str, Any] | None:
        site = self._there.get(values["name"])
        if site is None:
            return None
        return {"name": site.name, "latitude": site.latitude, "longitude": site.longitude}

    def make(self, values: RowValues, *, actor: Actor, now: datetime) -> None:
        site_create(**values, user=actor.user, now=now)
