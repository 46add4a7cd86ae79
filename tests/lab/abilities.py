"""Abilities of VPP that not all releases have, detected by VPP's message table as the agent does."""

from enum import Enum

from devstack.routers.vpp import Vpp


class Ability(Enum):
    """The messages that the ability needs."""

    ACTIVATION_TESTS = ("cli_inband", "pg_create_interface_v3", "pg_delete_interface")
    PATH_WATCH = ("bfd_udp_enable_multihop",)
    GRE_KEYS = ("gre_tunnel_add_del_v2", "gre_tunnel_dump_v2")


def missing(vpp: Vpp, ability: Ability) -> list[str]:
    """Return the messages that this VPP lacks for the ability."""
    names = {line.split()[-1] for line in vpp.show("show api message-table").splitlines() if line.strip()}
    return [message for message in ability.value if message not in names]
