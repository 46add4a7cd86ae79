"""The demo's first line, and the file with the demo's facts, for `make demo` and the demo in containers."""

import json
from pathlib import Path

from devstack.client import Client, Json


def first_line(customer: Client, ports: dict[str, int], *, timeout_s: float) -> str:
    """Order a line from Rhino to Hippo, and wait until the order has completed. Return the line's id.

    ``ports``: the ids of ports, keyed by router and interface. Raises Refused or NotReached.
    """
    end = {"tagging": "dot1q", "outer_vlan": 100, "inner_vlan": None, "exact_match": True}
    accepted = customer.order(
        description="Zurich-Basel",
        a_end=end | {"port": ports["rhino/host-cust1"]},
        z_end=end | {"port": ports["hippo/host-cust1"]},
        svc_mtu=1500,
        cir_bps=100_000_000,
        transport="auto",
    )
    customer.wait_completed(accepted.order, timeout_s=timeout_s)
    return accepted.vll


def private_write(path: Path, text: str) -> None:
    """Replace the file. Only the current user can read it, because it may contain passwords."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    fresh.replace(path)


def facts_write(path: Path, facts: Json) -> None:
    """Replace the file with these facts as JSON. Only the current user can read it."""
    private_write(path, json.dumps(facts, indent=2) + "\n")


def logins(facts: Json) -> list[str]:
    """Return a sentence for each login of the demo."""
    return [
        f"log in as {login['username']} ({who}) with password {login['password']}"
        for who in ("customer", "noc")
        if (login := facts[f"{who}_login"])
    ]
