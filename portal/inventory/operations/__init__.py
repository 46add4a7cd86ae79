"""Writes to the inventory. Each function runs one transaction; none uses the network.

Changes that can affect lines are in ``portal.vll.guarded_inventory_changes``, which checks the lines first.
"""

from portal.inventory.operations.certificates import certificate_register, certificates_revoke
from portal.inventory.operations.customers import customer_create
from portal.inventory.operations.enrolment import enrolment_end, enrolment_offer, router_enrol
from portal.inventory.operations.links import link_remove
from portal.inventory.operations.ports import port_create
from portal.inventory.operations.routers import router_create
from portal.inventory.operations.sites import site_change, site_create, site_remove

__all__ = [
    "certificate_register",
    "certificates_revoke",
    "customer_create",
    "enrolment_end",
    "enrolment_offer",
    "link_remove",
    "port_create",
    "router_create",
    "router_enrol",
    "site_change",
    "site_create",
    "site_remove",
]
