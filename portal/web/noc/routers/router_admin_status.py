"""The states that the NOC sets for a router: declared dead, drained, locked, frozen, under maintenance."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.inventory.models import Router


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
