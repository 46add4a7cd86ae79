"""Write the rows of the small ISP. Import this module after Django has been set up."""

import secrets
from datetime import datetime
from typing import Any

from django.db import transaction

from devstack.isp import ALPINE_DAIRY, BACKBONE_IP_MTU, COORDINATES, HARBOUR_PRESS, PORT_SPEED_BPS, Isp
from portal.accounts.models import Customer, Membership, User
from portal.accounts.tokens import token_create
from portal.inventory import models


def load(isp: Isp, *, agent_urls: dict[str, str], now: datetime) -> dict[str, Any]:
    """Write all rows in one transaction. Return the logins, the tokens and the ids of the ports.

    The result is {"customer_login": {"username", "password"}, "noc_login", "stranger_login",
    "customer_token", "noc_token", "stranger_token", "ports": {"rhino/host-cust1": id}}.
    """
    with transaction.atomic():
        customers = {
            name: Customer.objects.create(name=name, created_at=now) for name in (ALPINE_DAIRY, HARBOUR_PRESS)
        }
        people: dict[str, tuple[User, str]] = {
            "customer": _user("alice", customer=customers[ALPINE_DAIRY]),
            "stranger": _user("charlie", customer=customers[HARBOUR_PRESS]),
            "noc": _user("nina", noc_role=User.NocRole.NOC_ADMIN),
        }
        tokens = {
            f"{who}_token": token_create(user=user, name="demo", now=now)[1]
            for who, (user, _) in people.items()
        }
        logins = {
            f"{who}_login": {"username": user.username, "password": password}
            for who, (user, password) in people.items()
        }
        return tokens | logins | {"ports": _inventory(isp, customers, agent_urls)}


def _user(username: str, *, customer: Customer | None = None, noc_role: str = "none") -> tuple[User, str]:
    password = secrets.token_urlsafe(12)
    user = User.objects.create_user(username, password=password, noc_role=noc_role)
    if customer is not None:
        Membership.objects.create(user=user, customer=customer, role=Membership.Role.ADMIN)
    return user, password


def _site(name: str) -> models.Site:
    latitude, longitude = COORDINATES[name]
    return models.Site.objects.create(name=name, latitude=latitude, longitude=longitude)


def _inventory(isp: Isp, customers: dict[str, Customer], agent_urls: dict[str, str]) -> dict[str, int]:
    rows = {
        router.name: models.Router.objects.create(
            name=router.name,
            site=_site(router.site),
            loopback4=router.loopback4,
            loopback6=router.loopback6,
            agent_url=agent_urls.get(router.name, ""),
            cpu="Ryzen 5950X",
            cores=4,
        )
        for router in isp.routers
    }
    for a, z in (link.sides() for link in isp.links):
        models.BackboneLink.objects.create(
            a_router=rows[a.router],
            a_interface=a.interface,
            a_ip_mtu=BACKBONE_IP_MTU,
            z_router=rows[z.router],
            z_interface=z.interface,
            z_ip_mtu=BACKBONE_IP_MTU,
        )
    return {
        f"{router.name}/{port.interface}": models.Port.objects.create(
            router=rows[router.name],
            interface=port.interface,
            description=f"{port.customer}, {router.site}",
            customer=customers[port.customer],
            speed_bps=PORT_SPEED_BPS,
            bookable_bps=PORT_SPEED_BPS,
        ).pk
        for router in isp.routers
        for port in router.ports
    }
