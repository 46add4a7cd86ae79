"""Foreign L2VPNs in a NetBox, in addition to the small ISP of ``seeded``."""

from typing import Any

from devstack.netbox_writer import NetboxWriter


def others_l2vpns(seeded: NetboxWriter) -> None:
    """Create foreign L2VPNs of several types, on interfaces or VLANs, with or without a VNI as identifier."""
    api = seeded.api
    seeded.make(api.tenancy.tenants, "somebody", name="Somebody", slug="ll-test-somebody")
    seeded.make_all(
        api.vpn.l2vpns,
        {
            "milk": _l2vpn("Milk run", "vxlan", 7000, tenant=seeded.id("dairy")),
            "butter": _l2vpn("Butter run", "vpws", 7001, tenant=seeded.id("somebody")),
            "one": _l2vpn("One of two", "vxlan", 7003, tenant=seeded.id("dairy")),
            "two": _l2vpn("Two of two", "evpl", 7003, tenant=seeded.id("dairy")),
            "nobodys": _l2vpn("Cheese run", "vxlan-evpn", 7004, status="planned"),
            "other": _l2vpn("Not requested", "vxlan", 9999, tenant=seeded.id("dairy")),
            "none": _l2vpn("Without an identifier", "vpls", None),
        },
    )
    vlans = {f"vlan{vid}": {"name": f"ll-test-{vid}", "vid": vid, "status": "active"} for vid in (301, 1301)}
    seeded.make_all(api.ipam.vlans, vlans)
    interfaces = [f"{router}:cust2" for router in ("rhino", "hippo")]
    seeded.interfaces({name: {} for name in interfaces})
    seeded.make_all(
        api.vpn.l2vpn_terminations,
        {
            **{f"on {at}": _end(seeded, "milk", "dcim.interface", at) for at in interfaces},
            **{f"on {at}": _end(seeded, "butter", "ipam.vlan", at) for at in vlans},
        },
    )


def _l2vpn(name: str, kind: str, identifier: int | None, **otherwise: Any) -> dict[str, Any]:
    slug = f"ll-test-{name.lower().replace(' ', '-')}"
    return {"name": name, "slug": slug, "type": kind, "identifier": identifier, **otherwise}


def _end(seeded: NetboxWriter, l2vpn: str, kind: str, at: str) -> dict[str, Any]:
    on = {"assigned_object_type": kind, "assigned_object_id": seeded.id(at)}
    return {"l2vpn": seeded.id(l2vpn), **on}
