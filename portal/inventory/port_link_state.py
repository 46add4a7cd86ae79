"""The link of a port, as its router reports it."""

from dataclasses import dataclass
from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from portal.inventory.models import ObservedInterface, Port


class LinkState(models.TextChoices):
    UP = "up", pgettext_lazy("a link", "Up")
    DOWN = "down", _("No link")
    # The interface is shut in its router's configuration.
    OFF = "off", _("Switched off")
    # The router reports, but no interface of this name.
    MISSING = "missing", _("Not there yet")
    UNKNOWN = "unknown", _("Not reported")


@dataclass(frozen=True, slots=True)
class PortLink:
    """``since``: None where it has been so since it was first reported.

    ``seen``: as it was reported last, None for never; ``reported_at``: when its router last reported.
    """

    state: LinkState
    since: datetime | None = None
    seen: ObservedInterface | None = None
    reported_at: datetime | None = None


def port_link(port: Port, *, heard_since: datetime) -> PortLink:
    """Of a router that was not heard since then, or whose VPP is away, nobody knows.

    Select ``router.observed`` together with the port.
    """
    router = getattr(port.router, "observed", None)
    seen = ObservedInterface.objects.filter(router=port.router_id, name=port.interface).first()
    if router is None:
        return PortLink(LinkState.UNKNOWN)
    if not router.tells_of_vpp(heard_since=heard_since):
        return PortLink(LinkState.UNKNOWN, seen=seen, reported_at=router.reported_at)
    if seen is None:
        return PortLink(LinkState.MISSING, reported_at=router.reported_at)
    state = LinkState.OFF if not seen.admin_up else LinkState.UP if seen.link_up else LinkState.DOWN
    return PortLink(state, seen.link_since, seen, router.reported_at)
