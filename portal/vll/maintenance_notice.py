"""The notice to a customer whose line waits for the NOC's work on a router."""

from django.utils.translation import gettext as _

from portal.inventory.models import Router


def maintenance_notice(router: Router) -> dict[str, str] | None:
    """``{"code", "message"}`` for the customer, or None where the router is simply being asked."""
    if router.held_since is not None:
        text = _(
            "The NOC has been working on {router} since {since:%Y-%m-%d %H:%M} UTC and sends it "
            "nothing meanwhile. Orders continue by themselves afterwards."
        )
        return {
            "code": "router-held",
            "message": text.format(router=router.name, since=router.held_since),
        }
    if router.frozen_since is not None:
        text = _(
            "{router} has been frozen since {since:%Y-%m-%d %H:%M} UTC: nothing is changed on it meanwhile."
            " Orders continue by themselves afterwards."
        )
        return {
            "code": "router-frozen",
            "message": text.format(router=router.name, since=router.frozen_since),
        }
    if router.maintenance_since is not None:
        text = _(
            "{router} has been under maintenance since {since:%Y-%m-%d %H:%M} UTC, so this may take "
            "longer. Orders continue by themselves."
        )
        return {
            "code": "router-in-maintenance",
            "message": text.format(router=router.name, since=router.maintenance_since),
        }
    return None
