"""Where an alarm leads: the page on which something can be done about it."""

from django.urls import reverse

from portal.alarms.kinds import Kind
from portal.alarms.models import Alarm

_OF_KIND = {
    Kind.NETBOX: "web:noc-netbox",
    Kind.NETBOX_LINES: "web:noc-netbox",
    Kind.BLACK_HOLE: "web:noc-map",
    Kind.PATH_DOWN: "web:noc-map",
    Kind.PATH_UNHEARD: "web:noc-map",
}
_OF_OBJECT = {
    "router": "web:noc-router",
    "line": "web:vll",
    "port": "web:noc-ports-change",
    "link": "web:noc-links-change",
    "quarantine": "web:noc-quarantine",
    "webhook": "web:webhook",
}
_LOSSES = (Kind.LOSSES, Kind.FEW_BUFFERS)


def address_of(alarm: Alarm) -> str:
    """ "" where there is no such page, or where what it was about may be gone."""
    if alarm.cleared_at is not None:
        return ""
    kind, (what, _colon, about) = Kind(alarm.kind), alarm.object.partition(":")
    if kind in _OF_KIND:
        return reverse(_OF_KIND[kind])
    if kind in _LOSSES:
        return reverse("web:noc-router", args=[about.partition(":")[0]]) + "#losses"
    if kind == Kind.TROUBLE:
        return reverse("web:diagnosis", args=[about])
    if kind == Kind.ORDER_FAILED:
        return reverse("web:vll", args=[alarm.facts["line"]])
    if what == "order":
        return reverse("web:noc-order", args=[about])
    if kind == Kind.TEST_FAILED:
        return reverse("web:line-test", args=[alarm.facts["line"], alarm.facts["test"]])
    return reverse(_OF_OBJECT[what], args=[about]) if what in _OF_OBJECT else ""
