"""Writes to the inventory. Each function runs one transaction; none uses the network.

Writes that affect lines apply the rules of ``portal.inventory.rules``, which ``portal.vll`` registers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from portal.inventory.operations.certificates import (
    certificate_register,
    certificates_revoke,
    enrolment_end,
    enrolment_offer,
    router_enrol,
)
from portal.inventory.operations.customers_and_ports import (
    customer_change,
    customer_create,
    customer_remove,
    customer_return,
    port_change,
    port_create,
    port_remove,
)
from portal.inventory.operations.network import (
    link_change,
    link_create,
    link_remove,
    router_change,
    router_create,
    router_remove,
    site_change,
    site_create,
    site_remove,
)


class Writes(NamedTuple):
    """The operations of a kind. ``change`` and ``remove`` have a parameter with the name of the kind."""

    create: Callable[..., Any]
    change: Callable[..., Any]
    remove: Callable[..., Any]


# By the name of the kind.
WRITES = {
    "site": Writes(site_create, site_change, site_remove),
    "router": Writes(router_create, router_change, router_remove),
    "link": Writes(link_create, link_change, link_remove),
    "customer": Writes(customer_create, customer_change, customer_remove),
    "port": Writes(port_create, port_change, port_remove),
}

__all__ = [
    "WRITES",
    "Writes",
    "certificate_register",
    "certificates_revoke",
    "customer_change",
    "customer_create",
    "customer_remove",
    "customer_return",
    "enrolment_end",
    "enrolment_offer",
    "link_change",
    "link_create",
    "link_remove",
    "port_change",
    "port_create",
    "port_remove",
    "router_change",
    "router_create",
    "router_enrol",
    "router_remove",
    "site_change",
    "site_create",
    "site_remove",
]
