"""The use of an interface: a side of a backbone link, or a port."""

from django.utils.translation import gettext as _

from portal.inventory.errors import InterfaceTaken
from portal.inventory.models import BackboneLink, InterfaceUse, Port, Router


def interface_taken(*, router: Router, interface: str, field: str) -> InterfaceTaken:
    """Return the error that names the interface's present use."""
    use = InterfaceUse.objects.filter(router_id=router.pk, interface=interface).first()
    return InterfaceTaken(router=router.name, interface=interface, used_by=_user(use), field=field)


def is_in_use(*, router: Router, interface: str, except_link: int | None) -> bool:
    """Return whether anything except the link ``except_link`` uses the interface."""
    uses = InterfaceUse.objects.filter(router_id=router.pk, interface=interface)
    return (uses if except_link is None else uses.exclude(link_id=except_link)).exists()


def _user(use: InterfaceUse | None) -> str:
    if use is None:
        return _("another change")
    if use.link_id is not None:
        link = BackboneLink.objects.select_related("a_router", "z_router").filter(pk=use.link_id).first()
        return _("link {link}").format(link=link)
    port = Port.objects.select_related("router").filter(pk=use.port_id).first()
    return _("port {port}").format(port=port)
