"""What some releases of VPP can do and others cannot, told as the agent tells it: by the message table."""

from enum import Enum

from devstack.vpp import Vpp


class Ability(Enum):
    """The messages that it takes."""

    LINE_TESTS = ("cli_inband", "pg_create_interface_v3", "pg_delete_interface")
    PATH_WATCH = ("bfd_udp_enable_multihop",)
    GRE_KEYS = ("gre_tunnel_add_del_v2", "gre_tunnel_dump_v2")


def missing(vpp: Vpp, ability: Ability) -> list[str]:
    """The messages that this VPP lacks for it."""
    names = {line.split()[-1] for line in vpp.show("show api message-table").splitlines() if line.strip()}
    return [message for message in ability.value if message not in names]
