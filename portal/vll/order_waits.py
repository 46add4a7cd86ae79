"""The reasons why an accepted order would wait before routers build its line."""

from collections.abc import Collection
from dataclasses import dataclass

from django.utils.translation import gettext as _

from portal.inventory.models import Port
from portal.inventory.queries import interfaces_not_reported
from portal.vll.maintenance_notice import maintenance_notice


@dataclass(frozen=True, slots=True)
class Wait:
    """A reason why an order would wait. ``code`` is for programs, ``message`` for people."""

    code: str
    message: str


def waits_of(ports: Collection[Port]) -> list[Wait]:
    """Return why a line to these ports would not be built immediately.

    Read the ports with ``select_related("router")``.
    """
    routers = {port.router_id: port.router for port in ports}
    away = [each for each in routers.values() if each.locked_since or each.frozen_since]
    notices = [maintenance_notice(router) for router in away]
    waits = [Wait(notice["code"], notice["message"]) for notice in notices if notice is not None]
    text = _("{router} reports no interface {interface}. A line there would wait until it has one.")
    for port in interfaces_not_reported(ports):
        message = text.format(router=port.router.name, interface=port.interface)
        waits.append(Wait("interface-not-reported", message))
    return waits
