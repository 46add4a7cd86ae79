"""The choice of a port on which a user may order: a select of limited length, and a search."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core.quantities import row_id
from portal.core.reader_texts import rate_text
from portal.inventory.interfaces import with_link_speed
from portal.inventory.kinds import found
from portal.inventory.models import Port

# The maximum number of ports in the select. Users would not read a longer list.
SHOWN = 50

PortChoices = list[tuple[str, Any]]


def orderable_ports(user: User) -> QuerySet[Port]:
    """Return all ports on which the user may order."""
    customers = permissions.orderable_customers(user)
    return Port.objects.filter(customer__in=customers).exclude(router__agent_url="")


def port_offer(
    user: User, *, search: str = "", chosen: str = "", owner: int | None = None
) -> tuple[PortChoices, bool]:
    """Return the choices of the select, and whether to offer a search.

    The choices are the first SHOWN ports that match ``search``, and always the port ``chosen``; none if no
    port matches. A search is offered if further ports match, or if the ports are already the result of one.

    The ports are grouped by site, or by customer and site if they belong to several customers. ``owner``: the
    id of the customer of a line to change. Its ends may only move to ports of this customer.
    """
    ports = with_link_speed(orderable_ports(user).select_related("router__site", "customer"))
    if owner is not None:
        ports = ports.filter(customer=owner)
    ordered = ports.order_by("customer__name", "router__site__name", "router__name", "interface")
    rows = list((found(ordered, search) if search else ordered)[: SHOWN + 1])
    more = len(rows) > SHOWN or bool(search)
    rows = rows[:SHOWN]
    number = row_id(chosen)
    if number is not None and number not in {port.pk for port in rows}:
        rows += ordered.filter(pk=number)
    return _grouped(rows), more


class PortField(forms.TypedChoiceField):
    """A select that accepts any port in ``ports``, even if it does not show the port."""

    ports: QuerySet[Port] = Port.objects.none()
    default_error_messages = {
        "invalid_choice": gettext_lazy(
            "This port does not exist, or you may not order on it. Choose one from the list."
        ),
    }

    def valid_value(self, value: Any) -> bool:
        number = row_id(value)
        return number is not None and self.ports.filter(pk=number).exists()


def _grouped(ports: list[Port]) -> PortChoices:
    several = len({port.customer_id for port in ports}) > 1
    groups: dict[str, list[tuple[int, str]]] = {}
    for port in ports:
        site = port.router.site.name
        group = f"{port.customer} – {site}" if several else site
        groups.setdefault(group, []).append((port.pk, _label(port)))
    return [("", _("Choose a port")), *groups.items()] if groups else []


def _label(port: Port) -> str:
    """Return the label of a port in the select.

    The label begins with the site, because users know a port by its site. Long parts are at the end, where a
    browser cuts the label.
    """
    label = _("{site} – {port} – {free} of {all} free").format(
        site=port.router.site.name,
        port=port,
        free=rate_text(port.free_bps),
        all=rate_text(port.bookable_now_bps),
    )
    if port.router.maintenance_since is not None:
        label = _("{port}, under maintenance").format(port=label)
    return f"{label} – {port.description}" if port.description else label
