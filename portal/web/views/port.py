"""The page of a port: link, booked bandwidth, VLANs, lines, traffic and losses."""

from datetime import timedelta

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Min
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from portal.accounts import permissions
from portal.accounts.models import User
from portal.accounts.tenant_ids import customers_named
from portal.allocation.vlan_usage import vlan_usage
from portal.core import clock
from portal.core.equals_any import EqualsAny
from portal.diagnosis.health import with_health
from portal.inventory.models import Port
from portal.inventory.port_link_state import port_link, with_link_speed
from portal.telemetry.router_losses import port_losses
from portal.vll import queries
from portal.vll.models import VllEnd
from portal.vll.operations.oper_status import FRESH
from portal.vll.states import TERMINAL_LIFECYCLES
from portal.web.forms.port_choice import orderable_ports
from portal.web.page_guard import SignedInRequest, requires
from portal.web.pagination import newest_first
from portal.web.vlan_picture import strips_of

_RECENT = timedelta(days=1)
_LOSS_STEP_S = 1800
# The maximum number of VLAN ranges in the list. With ``?vlans=all``, the list has all ranges.
RANGES_SHOWN = 24


def visible_port(user: User, port_id: int) -> Port:
    """Return the port with its router and the speed of its link.

    Raises Http404 if the user may not see it.
    """
    rows = Port.objects.visible_to(user).select_related("router__site", "router__observed", "customer")
    port: Port = get_object_or_404(with_link_speed(rows), pk=port_id)
    return port


@requires(permissions.may_see, of=visible_port)
@require_safe
def page(request: SignedInRequest, port: Port) -> HttpResponse:
    """Show a port. With ``?vlans=all``, all VLAN ranges are listed.

    ``?after=`` is the cursor for the pages of its lines.
    """
    now = clock.now()
    ends = VllEnd.objects.filter(port=port).exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)
    here = EqualsAny("pk", ArraySubquery(ends.values("vll")))
    lines = queries.vlls(request.user).filter(customers_named(request.user), here)
    found = newest_first(lines, by="created_at", after=request.GET.get("after", ""))
    usage = vlan_usage(port)
    link = port_link(port, reported_since=now - FRESH)
    context = {
        "port": port,
        "link": link,
        "usage": usage,
        "strips": strips_of(usage),
        "ranges_shown": None if request.GET.get("vlans") == "all" else RANGES_SHOWN,
        "vlls": with_health(found.rows),
        "page": found,
        # The graph begins at the time when the port got its first line.
        "since": port.vlan_leases.aggregate(at=Min("leased_at"))["at"],
        "may_order": orderable_ports(request.user).filter(pk=port.pk).exists(),
        "order_url": f"{reverse('web:order')}?port={port.pk}",
        "losses": port_losses(port=port, since=now - _RECENT, until=now, step_s=_LOSS_STEP_S, now=now),
    }
    return render(request, "ports/port.html", context)
