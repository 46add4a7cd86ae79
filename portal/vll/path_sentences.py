"""What was found on a path, in words."""

from django.utils.translation import gettext as _

from portal.vll.models import TunnelPath


def black_hole_sentence(path: TunnelPath) -> str:
    """``MTU black hole between rhino and hippo: …``."""
    return _(
        "MTU black hole between {a} and {z} over IPv{family}: packets of {needed} bytes are lost, and the"
        " largest that passes has {proven}."
    ).format(
        a=path.a_router.name,
        z=path.z_router.name,
        family=path.family,
        needed=f"{path.needed_ip_mtu:,}",
        proven=f"{path.proven_ip_mtu or 0:,}",
    )
