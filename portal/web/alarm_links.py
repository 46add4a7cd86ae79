"""The page on which the NOC can handle an alarm."""

from django.urls import NoReverseMatch, reverse

from portal.alarms.kinds import Kind
from portal.alarms.models import Alarm

_OF_KIND: dict[str, str] = {
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
    """Return the address of the page for an active alarm; "" if the alarm is cleared or has no page.

    A newer release may have stored alarms of kinds or objects that this release does not know.
    """
    if alarm.cleared_at is not None:
        return ""
    try:
        return _address_of(alarm)
    except (KeyError, NoReverseMatch):
        return ""


def _address_of(alarm: Alarm) -> str:
    kind, (what, _colon, about) = alarm.kind, alarm.object.partition(":")
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
        return reverse("web:activation-test", args=[alarm.facts["line"], alarm.facts["test"]])
    return reverse(_OF_OBJECT[what], args=[about]) if what in _OF_OBJECT else ""
