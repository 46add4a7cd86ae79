"""The ports that a user may order on, as the groups of a select."""

from typing import Any

from django.utils.translation import gettext as _

from portal.accounts import policies
from portal.accounts.models import User
from portal.core.units import rate_text
from portal.inventory.models import Port

PortChoices = list[tuple[str, Any]]


def port_choices(user: User) -> PortChoices:
    """Grouped by customer when there are several, else by site; empty when there is nothing to order on."""
    ports = (
        Port.objects.filter(customer__in=policies.orderable_customers(user))
        .exclude(router__agent_url="")
        .select_related("router__site", "customer")
        .order_by("customer__name", "router__site__name", "router__name", "interface")
    )
    several = len({port.customer_id for port in ports}) > 1
    groups: dict[str, list[tuple[int, str]]] = {}
    for port in ports:
        site = port.router.site.name
        group = f"{port.customer} – {site}" if several else site
        groups.setdefault(group, []).append((port.pk, _label(port)))
    return [("", _("Choose a port")), *groups.items()] if groups else []


def _label(port: Port) -> str:
    name = f"{port} {port.description}".strip()
    return _("%(port)s – %(free)s of %(all)s free") % {
        "port": name,
        "free": rate_text(port.free_bps),
        "all": rate_text(port.bookable_bps),
    }
