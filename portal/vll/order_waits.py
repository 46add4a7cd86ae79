"""The reasons why an accepted order would wait before routers build its line, with the customer's notice."""

from collections.abc import Collection
from dataclasses import dataclass

from django.utils.translation import gettext as _

from portal.core.reader_zone import moment_text
from portal.inventory.models import Port, Router
from portal.inventory.queries import interfaces_not_reported


def maintenance_notice(router: Router) -> dict[str, str] | None:
    """Return ``{"code", "message"}`` for the customer, or None if the NOC is not working on the router."""
    if router.locked_since is not None:
        text = _(
            "The NOC has been working on {router} since {since} and sends it "
            "nothing meanwhile. Orders continue automatically afterwards."
        )
        return {
            "code": "router-held",
            "message": text.format(router=router.name, since=moment_text(router.locked_since)),
        }
    if router.frozen_since is not None:
        text = _(
            "{router} has been frozen since {since}: nothing is changed on it meanwhile."
            " Orders continue automatically afterwards."
        )
        return {
            "code": "router-frozen",
            "message": text.format(router=router.name, since=moment_text(router.frozen_since)),
        }
    if router.maintenance_since is not None:
        text = _(
            "{router} has been under maintenance since {since}, so this may take "
            "longer. Orders continue automatically."
        )
        return {
            "code": "router-in-maintenance",
            "message": text.format(router=router.name, since=moment_text(router.maintenance_since)),
        }
    return None


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
