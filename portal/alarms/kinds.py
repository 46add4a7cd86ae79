"""The kinds of alarms, and a condition that raises one."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

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
    """The kinds of alarms, with their severity. The labels are headings, and options of a filter."""

    severity: Severity

    def __new__(cls, value: str, severity: Severity) -> Self:
        kind = str.__new__(cls, value)
        kind._value_, kind.severity = value, severity
        return kind

    REPORTS_AWAY = "reports_away", Severity.CRITICAL, _("No reports from any router")
    ROUTER_SILENT = "router_silent", Severity.CRITICAL, _("Routers silent")
    VPP_AWAY = "vpp_away", Severity.CRITICAL, _("Routers without a VPP")
    VPP_HANGS = "vpp_hangs", Severity.CRITICAL, _("Routers whose VPP hangs and must be restarted")
    PATH_DOWN = "path_down", Severity.CRITICAL, _("Paths down")
    PORT_DOWN = "port_down", Severity.MAJOR, _("Ports without link")
    PORT_SLOW = "port_slow", Severity.MAJOR, _("Ports slower than agreed")
    LINE_DOWN = "line_down", Severity.MAJOR, _("Lines down")
    BLACK_HOLE = "black_hole", Severity.MAJOR, _("MTU black holes")
    TROUBLE = "trouble", Severity.MAJOR, _("Trouble reported by customers")
    ROUTER_DIFFERS = "router_differs", Severity.MAJOR, _("Routers with configuration drift")
    LINE_DIFFERS = "line_differs", Severity.MAJOR, _("Lines with configuration drift")
    CONTESTED = "contested", Severity.MAJOR, _("Configuration of lines changed by somebody else")
    VLAN_LOSS = "vlan_loss", Severity.MAJOR, _("Lines whose VLAN a router does not recognize")
    LOSSES = "losses", Severity.MAJOR, _("Backbone interfaces losing frames")
    ORDER_OVERDUE = "order_overdue", Severity.MAJOR, _("Overdue orders")
    ORDER_FAILED = (
        "order_failed",
        Severity.MAJOR,
        _("Orders that failed in the last day and were not retried"),
    )
    AGENT_AHEAD = "agent_ahead", Severity.MAJOR, _("Agents ahead of the database")
    RELAY = "relay", Severity.MAJOR, _("Messages that the relay has not sent")
    QUEUE_UNSERVED = "queue_unserved", Severity.MAJOR, _("Queues without a worker")
    FEW_BUFFERS = "few_buffers", Severity.MINOR, _("Routers short of buffers")
    TEST_FAILED = "test_failed", Severity.MINOR, _("Failed activation tests")
    UNCONFIRMED = "unconfirmed", Severity.MINOR, _("Removed lines that routers have not confirmed")
    LINK_MTU = "link_mtu", Severity.MINOR, _("Links with conflicting MTUs")
    LINK_INTERFACE = "link_interface", Severity.MINOR, _("Links with a missing interface")
    FILES_ASIDE = "files_aside", Severity.MINOR, _("Agents with unusable files")
    CERTIFICATE_ENDS = (
        "certificate_ends",
        Severity.MINOR,
        _("Router certificates that expire soon and were not renewed"),
    )
    # The stored name is that of release 0.1.0, whose alarm was about the samples of the wrong clock.
    CLOCK_WRONG = "quarantine", Severity.MINOR, _("Routers with a wrong clock")
    MAILS = "mails", Severity.MINOR, _("Mail that the mail server does not accept")
    WEBHOOK = "webhook", Severity.MINOR, _("Disabled webhooks")
    NETBOX = "netbox", Severity.MINOR, _("NetBox does not answer, or was last read too long ago")
    NETBOX_LINES = "netbox_lines", Severity.MINOR, _("Lines that NetBox refuses")
    PATH_UNHEARD = (
        "path_unheard",
        Severity.WARNING,
        _("Paths that cannot be watched: UDP port 4784 may be filtered"),
    )
    ORDER_PENDING_APPROVAL = "order_held", Severity.WARNING, _("Orders pending approval")
    WITHHELD = "withheld", Severity.WARNING, _("Routers locked, frozen or under maintenance")
    PORT_FULL = "port_full", Severity.WARNING, _("Ports almost fully booked")
    ROUTER_FULL = "router_full", Severity.WARNING, _("Routers with almost fully booked cores")


def kind_choices() -> list[tuple[str, Any]]:
    """Return the choices of the model's field.

    Migrations contain the name of this function and not the labels, so a new label needs no migration.
    """
    return Kind.choices


# The name of an object that exists only once: the agent API, the mail server or NetBox.
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

    ``object`` identifies a row, for example ``router:7``; ``name`` is its name for readers. ``facts`` are
    JSON values for the sentence (portal.alarms.sentences). ``since`` is None if unknown.
    """

    kind: Kind
    object: str
    name: str
    since: datetime | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    routers: tuple[int, ...] = ()
    affected: Affected = NOBODY
