"""Refusals that a retry cannot fix.

The numbers and names are VPP's (src/vnet/api_errno.h, in later releases src/vnet/error.h). The agent reads
VPP's state before it acts, so a stale index (-2, -6) or a busy system (-11 to -20) is temporary. A code that
is not listed counts as temporary. If that is wrong, the order raises an alarm after two minutes. A wrong
permanent code would fail a customer's order.
"""

from collections.abc import Mapping
from typing import Any

PERMANENT = {
    -7: "INVALID_VALUE",
    -8: "INVALID_VALUE_2",
    -9: "UNIMPLEMENTED",
    -30: "FEATURE_DISABLED",
    -55: "INVALID_VLAN",
    -56: "VLAN_ALREADY_EXISTS",
    -57: "INVALID_SRC_ADDRESS",
    -58: "INVALID_DST_ADDRESS",
    -59: "ADDRESS_LENGTH_MISMATCH",
    -68: "SUBIF_ALREADY_EXISTS",
    -72: "INVALID_VLAN_TAG_COUNT",
    -73: "INVALID_ARGUMENT",
    -75: "TUNNEL_EXIST",
    -79: "IF_ALREADY_EXISTS",
    -82: "SAME_SRC_DST",
    -97: "INVALID_ADDRESS_FAMILY",
    -126: "UNSUPPORTED",
}


def is_permanent(status: str, reason: Mapping[str, Any]) -> bool:
    """Return whether a retry cannot improve the result ``status`` with ``reason``
    (docs/reference/agent-api.md).

    A conflict is permanent: its cause is a foreign object. ``pending`` can always improve.
    """
    if status == "conflict":
        return True
    return status == "failed" and (reason["code"] == "unsupported" or reason["retval"] in PERMANENT)
