"""Example bodies for requests in which not all members can be combined."""

from typing import Any

_CSR = "-----BEGIN CERTIFICATE REQUEST-----\n…\n-----END CERTIFICATE REQUEST-----\n"
_A_END = {"port": 12, "tagging": "dot1q", "outer_vlan": 100}
_Z_END = {"port": 34, "tagging": "dot1q", "outer_vlan": "any"}
_LINK = {"a_ip_mtu": 9000, "z_ip_mtu": 9000}

# Keyed by the name of the schema's component.
BODIES: dict[str, dict[str, Any]] = {
    "ActivationTestRequestRequest": {"frame": 1514},
    "CalibrationWriteRequest": {"calibration": None},
    "CustomerWriteRequest": {"name": "Basel Bakery", "approve_up_to_bps": 1_000_000_000},
    "DiscardRequest": {"reason": "The clock was a day ahead."},
    "EnrolRequest": {"token": "the token that the NOC gave you", "csr_pem": _CSR},
    "ForceEndRequest": {"reason": "The router was replaced."},
    "HoldMakeRequest": {"a_end": _A_END, "z_end": _Z_END, "cir_bps": 100_000_000},
    "ImportWriteRequest": {
        "kind": "sites",
        "dry_run": True,
        "csv": "name,latitude,longitude\nBasel,47.5596,7.5886\n",
    },
    "InvitationCreateRequest": {"email": "vera@customer.example", "role": "viewer"},
    "LineTestRequestRequest": {"frame": 1514},
    "LinkWriteRequest": {
        "a_router": "rhino",
        "a_interface": "bb-west",
        "z_router": "zebra",
        "z_interface": "bb-east",
        **_LINK,
        "in_service": False,
    },
    "OrderAddRequest": {
        "description": "Zurich-Basel",
        "a_end": _A_END,
        "z_end": _Z_END,
        "svc_mtu": 1500,
        "cir_bps": 100_000_000,
    },
    "PatchedCustomerWriteRequest": {"approve_up_to_bps": 1_000_000_000},
    "PatchedLinkWriteRequest": _LINK,
    "PatchedMailsRequest": {"failures": True, "reports": False},
    "PatchedMemberChangeRequest": {"role": "operator"},
    "PatchedPortChangeRequest": {"description": "Rack 7, port 3"},
    "PatchedRouterChangeRequest": {"cores": 4},
    "PatchedSiteWriteRequest": {"name": "Zurich"},
    "PatchedVllChangeRequest": {"cir_bps": 200_000_000},
    "PatchedVniRangeWriteRequest": {"reason": "Lines of the old portal"},
    "PatchedWebhookChangeRequest": {"types": ["vll.up", "vll.down"]},
    "PortCreateRequest": {
        "router": "rhino",
        "interface": "host-cust3",
        "customer": "Alpine Dairy",
        "speed_bps": 10_000_000_000,
    },
    "RejectionRequest": {"reason": "The port is about to be moved."},
    "RevocationRequest": {"serial": None},
    "RouterActionRequest": {"do": "maintenance-begin", "reason": "New line card"},
    "RouterCreateRequest": {
        "name": "lynx",
        "site": "Zürich",
        "loopback4": "10.255.0.9",
        "agent_url": "https://lynx.example.net:9443",
    },
    "SiteWriteRequest": {"name": "Basel"},
    "TokenCreateRequest": {"name": "nightly report", "scopes": ["read"]},
    "TroubleReportRequestRequest": {"note": "No frames since 09:30."},
    "VniRangeWriteRequest": {"first": 70_000, "last": 79_999, "reason": "Lines of the old portal"},
    "WebhookCreateRequest": {"url": "https://hooks.customer.example/lines", "types": ["vll.up", "vll.down"]},
}
