"""Template tags and filters for the NOC's pages: states of routers, roles, cores, NetBox, and plans."""

from typing import Any

from django import template
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.allocation.cpu_core_bookings import CoreUse
from portal.core.units import number_text
from portal.inventory.models import Router
from portal.netbox_sync.netbox_status import KIND_NAMES, PHASES, error_sentence, finding_sentence
from portal.web.page.badges import badge_markup


def router_admin_status(router: Router) -> list[tuple[Promise, str]]:
    """Return the label of each state and the tone of its badge, the most serious first.

    The list is empty for a router in service. A router that is drained or declared dead is always under
    maintenance too. In this case the list omits the maintenance.
    """
    states: list[tuple[Promise, str]] = []
    if router.dead_since is not None:
        states.append((_("Declared dead"), "danger"))
    if router.drained_since is not None:
        states.append((_("Drained"), "warning"))
    if router.locked_since is not None:
        states.append((_("Locked"), "warning"))
    if router.frozen_since is not None:
        states.append((_("Frozen"), "warning"))
    if router.maintenance_since is not None and router.dead_since is None and router.drained_since is None:
        states.append((_("Under maintenance"), "warning"))
    return states


register = template.Library()

NOC_ROLES = {
    User.NocRole.NOC.value: _("NOC user"),
    User.NocRole.NOC_ADMIN.value: _("NOC admin"),
    User.NocRole.NONE.value: _("Not NOC staff"),
}


@register.filter
def noc_role(role: str) -> str:
    """Return the name of a NOC role."""
    return str(NOC_ROLES[role])


@register.simple_tag
def core_meter(use: CoreUse) -> SafeString:
    """Return a meter of the booked CPU cores of a router."""
    booked, bookable = number_text(use.booked_cores), number_text(use.bookable_cores)
    return format_html(
        '<span class="ll-meter"><meter min="0" max="{}" value="{}" aria-label="{}"></meter> {}</span>',
        f"{use.bookable_cores:.3f}",
        f"{use.booked_cores:.3f}",
        gettext("Cores booked"),
        gettext("%(percent)s %%: %(booked)s of %(all)s")
        % {"percent": use.percent, "booked": booked, "all": bookable},
    )


@register.simple_tag
def router_admin_status_badges(router: Router) -> SafeString:
    """Return the badges of the states that the NOC has set for a router; "" for a router in service."""
    return format_html_join(" ", "{}", ((badge_markup(*each),) for each in router_admin_status(router)))


@register.filter
def netbox_error(error: dict[str, Any]) -> str:
    """Return the sentence for the error of a run or of a line's export."""
    return error_sentence(error)


@register.filter
def netbox_finding(finding: dict[str, Any]) -> str:
    """Return the sentence for a finding about a NetBox object."""
    return finding_sentence(finding)


@register.filter
def netbox_kind(kind: str) -> Any:
    """Return the name of a kind of inventory row, such as ``port``."""
    return KIND_NAMES.get(kind, kind)


@register.filter
def netbox_phase(phase: str) -> Any:
    """Return the name of a run's phase, such as "Reading devices"."""
    return PHASES.get(phase, phase)


@register.filter
def as_json(value: Any) -> str:
    """Return a value of an intent as JSON. Exceptions: a text has no quotes, and null becomes "–"."""
    if value is None:
        return "–"
    return str(value).lower() if isinstance(value, bool) else str(value)
