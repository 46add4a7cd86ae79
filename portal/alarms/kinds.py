"""The kinds of alarms, and a condition that raises one."""

from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _


class Severity(models.IntegerChoices):
    """The severity of an alarm.

    * Critical and major: customers notice the problem or will notice it soon.
    * Minor: customers do not notice it, but it needs a repair.
    * Warning: nothing has failed yet.
    """

    CRITICAL = 1, _("Critical")
    MAJOR = 2, _("Major")
    MINOR = 3, _("Minor")
    WARNING = 4, _("Warning")


class Kind(models.TextChoices):
    """The kinds of alarms. The labels are used as headings and as options of a filter."""

    REPORTS_AWAY = "reports_away", _("No reports from any router")
    ROUTER_SILENT = "router_silent", _("Routers silent")
    VPP_AWAY = "vpp_away", _("Routers without a VPP")
    VPP_HANGS = "vpp_hangs", _("Routers whose VPP hangs and must be restarted")
    PATH_DOWN = "path_down", _("Paths down")
    PORT_DOWN = "port_down", _("Ports without link")
    PORT_SLOW = "port_slow", _("Ports slower than agreed")
    LINE_DOWN = "line_down", _("Lines down")
    BLACK_HOLE = "black_hole", _("MTU black holes")
    TROUBLE = "trouble", _("Trouble reported by customers")
    ROUTER_DIFFERS = "router_differs", _("Routers with configuration drift")
    LINE_DIFFERS = "line_differs", _("Lines with configuration drift")
    CONTESTED = "contested", _("Configuration of lines changed by somebody else")
    VLAN_LOSS = "vlan_loss", _("Lines whose VLAN a router does not recognize")
    LOSSES = "losses", _("Backbone interfaces losing frames")
    ORDER_OVERDUE = "order_overdue", _("Overdue orders")
    ORDER_FAILED = "order_failed", _("Orders that failed in the last day and were not retried")
    AGENT_AHEAD = "agent_ahead", _("Agents ahead of the database")
    RELAY = "relay", _("Messages that the relay has not sent")
    QUEUE_UNSERVED = "queue_unserved", _("Queues without a worker")
    FEW_BUFFERS = "few_buffers", _("Routers short of buffers")
    TEST_FAILED = "test_failed", _("Failed activation tests")
    UNCONFIRMED = "unconfirmed", _("Removed lines that routers have not confirmed")
    LINK_MTU = "link_mtu", _("Links with conflicting MTUs")
    LINK_INTERFACE = "link_interface", _("Links with a missing interface")
    FILES_ASIDE = "files_aside", _("Agents with unusable files")
    CERTIFICATE_ENDS = "certificate_ends", _("Router certificates that expire soon and were not renewed")
    # The stored name is that of release 0.1.0, whose alarm was about the samples of the wrong clock.
    CLOCK_WRONG = "quarantine", _("Routers with a wrong clock")
    MAILS = "mails", _("Mail that the mail server does not accept")
    WEBHOOK = "webhook", _("Disabled webhooks")
    NETBOX = "netbox", _("NetBox does not answer, or was last read too long ago")
    NETBOX_LINES = "netbox_lines", _("Lines that NetBox refuses")
    PATH_UNHEARD = "path_unheard", _("Paths that cannot be watched: UDP port 4784 may be filtered")
    ORDER_PENDING_APPROVAL = "order_held", _("Orders pending approval")
    WITHHELD = "withheld", _("Routers locked, frozen or under maintenance")
    PORT_FULL = "port_full", _("Ports almost fully booked")
    ROUTER_FULL = "router_full", _("Routers with almost fully booked cores")


def kind_choices() -> list[tuple[str, Any]]:
    """Return the choices of the model's field.

    Migrations contain the name of this function and not the labels, so a new label needs no migration.
    """
    return Kind.choices


# The first kind of each severity. The kinds are declared in the order of their severity.
_FIRST = {
    Kind.REPORTS_AWAY: Severity.CRITICAL,
    Kind.PORT_DOWN: Severity.MAJOR,
    Kind.FEW_BUFFERS: Severity.MINOR,
    Kind.PATH_UNHEARD: Severity.WARNING,
}
_SEVERITIES = accumulate((_FIRST.get(kind, Severity.CRITICAL) for kind in Kind), max)
SEVERITIES: dict[Kind, Severity] = dict(zip(Kind, _SEVERITIES, strict=True))


# The name of an object that exists only once: the relay, the mail server, the agent API or NetBox.
PORTAL = "portal"


@dataclass(frozen=True, slots=True)
class Affected:
    """The lines that a cause affects, and their customers: two counts, and the first lines.

    ``first`` has an object ``{"line", "name", "customer"}`` for each of the first lines.
    """

    lines: int = 0
    customers: int = 0
    first: list[dict[str, str]] = field(default_factory=list)


NOBODY = Affected()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmCondition:
    """A current problem. Two conditions with the same ``kind`` and ``object`` are the same alarm.

    ``object`` identifies a row, for example ``router:7``; ``name`` is the object's name for a reader.
    ``facts`` are JSON values for the sentence (portal.alarms.sentences). ``since`` is None if the start is
    unknown.
    """

    kind: Kind
    object: str
    name: str
    since: datetime | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    routers: tuple[int, ...] = ()
    affected: Affected = NOBODY
