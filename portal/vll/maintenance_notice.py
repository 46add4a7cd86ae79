"""The notice to a customer whose line waits for the NOC's work on a router."""

from django.utils.translation import gettext as _

from portal.core.reader_zone import moment_text
from portal.inventory.models import Router


def maintenance_notice(router: Router) -> dict[str, str] | None:
    """Return ``{"code", "message"}`` for the customer, or None if the NOC is not working on the router."""
    if router.locked_since is not None:
        text = _(
            "The NOC has been working on {router} since {since} and sends it "
            "nothing meanwhile. Orders continue automatically afterwards."
        )
        return {
            "code": "router-held",
            "message": text.format(router=router.name, since=moment_text(router.locked_since)),
        }
    if router.frozen_since is not None:
        text = _(
            "{router} has been frozen since {since}: nothing is changed on it meanwhile."
            " Orders continue automatically afterwards."
        )
        return {
            "code": "router-frozen",
            "message": text.format(router=router.name, since=moment_text(router.frozen_since)),
        }
    if router.maintenance_since is not None:
        text = _(
            "{router} has been under maintenance since {since}, so this may take "
            "longer. Orders continue automatically."
        )
        return {
            "code": "router-in-maintenance",
            "message": text.format(router=router.name, since=moment_text(router.maintenance_since)),
        }
    return None
