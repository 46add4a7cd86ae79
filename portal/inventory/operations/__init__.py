"""Writes to the inventory. Each function runs one transaction; none uses the network.

Writes that affect lines apply the rules of ``portal.inventory.rules``, which ``portal.vll`` registers.
"""

from portal.inventory.operations.certificates import certificate_register, certificates_revoke
from portal.inventory.operations.customers_and_ports import (
    customer_change,
    customer_create,
    customer_remove,
    customer_return,
    port_change,
    port_create,
    port_remove,
)
from portal.inventory.operations.enrolment import enrolment_end, enrolment_offer, router_enrol
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

__all__ = [
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
