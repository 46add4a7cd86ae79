"""A small ISP in a NetBox, created through its REST API: three routers, cables, a bundle, customer ports."""

from typing import Any

import pynetbox

from devstack.netbox_writer import NetboxWriter

ROLE, UNI = "ll-test-router", "ll-test-uni"
CUSTOMER_FIELD = "ll_test_customer"
# In the order of removal: objects that others depend on come last.
_LEFTOVERS = (
    ("dcim.device_types", {"slug__isw": "ll-test"}),
    ("dcim.manufacturers", {"slug__isw": "ll-test"}),
    ("dcim.device_roles", {"slug__isw": "ll-test"}),
    ("dcim.sites", {"slug__isw": "ll-test"}),
    ("extras.custom_fields", {"name__isw": "ll_test"}),
    ("extras.custom_fields", {"name__isw": "longline_"}),
    ("tenancy.tenants", {"slug__isw": "ll-test"}),
    ("extras.tags", {"slug__isw": "ll-test"}),
    ("ipam.vlans", {"name__isw": "ll-test"}),
)


def clear(url: str, token: str) -> None:
    """Remove the objects that an earlier run left in a running NetBox."""
    api = pynetbox.api(url, token=token)
    api.http_session.trust_env = False

    def all_of(path: str, **chosen: Any) -> list[Any]:
        app, name = path.split(".")
        return [*getattr(getattr(api, app), name).filter(**chosen)]

    def remove(path: str, **chosen: Any) -> None:
        if rows := all_of(path, **chosen):
            app, name = path.split(".")
            getattr(getattr(api, app), name).delete(rows)

    for slugs in ("longline-", "ll-test"):
        remove("vpn.l2vpns", slug__isw=slugs)
    if roles := [row.id for row in all_of("dcim.device_roles", slug__isw="ll-test")]:
        if devices := [row.id for row in all_of("dcim.devices", role_id=roles)]:
            remove("ipam.ip_addresses", device_id=devices)
        remove("dcim.devices", role_id=roles)
    for path, chosen in _LEFTOVERS:
        remove(path, **chosen)


def seed(url: str, token: str) -> NetboxWriter:
    """Create cables Rhino–Hippo and Hippo–Zebra, whose far MTU is unknown, and a bundle of two Zebra–Rhino.

    The ports cust0 of Rhino and Hippo belong to Alpine Dairy; cust1 of Rhino has no customer.
    """
    seeded = NetboxWriter(url, token)
    api = seeded.api
    seeded.make(api.extras.tags, "uni", name="Longline test port", slug=UNI)
    seeded.make(
        api.extras.custom_fields,
        "customer field",
        name=CUSTOMER_FIELD,
        type="object",
        object_types=["dcim.interface"],
        related_object_type="tenancy.tenant",
    )
    seeded.make(api.tenancy.tenants, "dairy", name="Alpine Dairy", slug="ll-test-alpine-dairy")
    seeded.make_all(
        api.dcim.sites,
        {
            slug: {"name": name, "slug": f"ll-test-{slug}", "status": "active"}
            for slug, name in (("zurich", "Zürich"), ("bern", "Bern"))
        },
    )
    maker = seeded.make(api.dcim.manufacturers, "maker", name="Longline test maker", slug="ll-test-maker")
    model = seeded.make(
        api.dcim.device_types, "model", manufacturer=maker, model="Longline test box", slug="ll-test-box"
    )
    role = seeded.make(api.dcim.device_roles, "role", name="Longline test router", slug=ROLE, color="9e9e9e")
    common = {"role": role, "device_type": model, "status": "active"}
    sites = {"rhino": "zurich", "hippo": "bern", "zebra": "bern"}
    seeded.make_all(
        api.dcim.devices,
        {name: {**common, "name": name, "site": seeded.id(site)} for name, site in sites.items()},
    )
    port = {"mtu": 9100, "tags": [seeded.id("uni")]}
    dairys = {"custom_fields": {CUSTOMER_FIELD: seeded.id("dairy")}, "description": "To dairy", **port}
    bundle = {"type": "lag"}
    seeded.interfaces(
        {
            **{f"{router}:loop0": {"type": "virtual"} for router in sites},
            "rhino:bb0": {},
            "hippo:bb0": {},
            "hippo:bb1": {},
            "zebra:bb0": {"mtu": None},
            "rhino:BondEthernet0": bundle,
            "zebra:BondEthernet0": bundle,
            "rhino:cust0": dairys,
            "hippo:cust0": dairys,
            "rhino:cust1": {"description": "To nobody", **port},
        }
    )
    members = [f"{router}:{name}" for router in ("rhino", "zebra") for name in ("bb1", "bb2")]
    lag = {member: seeded.id(f"{member.split(':')[0]}:BondEthernet0") for member in members}
    seeded.interfaces({member: {"lag": lag[member], "mtu": None} for member in members})
    seeded.addresses(
        *((router, f"10.255.0.{number}/32") for number, router in enumerate(sites, start=1)),
        *((router, f"fd00:255::{number}/128") for number, router in enumerate(sites, start=1)),
    )
    seeded.cables(
        ("rhino:bb0", "hippo:bb0"),
        ("hippo:bb1", "zebra:bb0"),
        ("zebra:bb1", "rhino:bb1"),
        ("zebra:bb2", "rhino:bb2"),
    )
    return seeded
