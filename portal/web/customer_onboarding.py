"""The next steps to set up a customer, derived from missing objects, with a link to the form of each step."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from portal.accounts import permissions
from portal.accounts.invitations import open_invitations
from portal.accounts.models import Customer, Membership, User
from portal.inventory.models import Port
from portal.web.forms.port_choice import orderable_ports


@dataclass(frozen=True, slots=True)
class Step:
    """A step. ``why``: the reason for it.

    ``action`` and ``address``: the text and the address of the link. Both are "" if another user has to act.
    """

    why: str
    action: str = ""
    address: str = ""


def steps_of(customer: Customer, *, user: User, has_lines: bool, now: datetime) -> list[Step]:
    """Return the steps in the recommended order; an empty list for a retired customer."""
    if customer.retired_at is not None:
        return []
    return [*_of_people(customer, user, now), *_of_service(customer, user, has_lines)]


def add_port_address(customer: Customer) -> str:
    """Return the address of the form to add a port of this customer.

    After saving, the form returns to the customer's page.
    """
    return f"{reverse('web:noc-ports-add')}?{urlencode({'customer': customer.name})}"


def _of_service(customer: Customer, user: User, has_lines: bool) -> Iterator[Step]:
    ports = Port.objects.filter(customer=customer)
    if not ports.exists():
        yield Step(
            _("It has no port, so nothing can be ordered."), _("Add a port"), add_port_address(customer)
        )
    elif not has_lines:
        first = orderable_ports(user).filter(customer=customer).order_by("pk").first()
        if first is None:
            yield Step(_("Its ports are on routers without an agent, where no line can end."))
        else:
            address = f"{reverse('web:order')}?{urlencode({'port': first.pk})}"
            yield Step(_("It has no line yet."), _("Order a line for them"), address)


def _of_people(customer: Customer, user: User, now: datetime) -> Iterator[Step]:
    people = Membership.objects.filter(customer=customer, user__is_active=True)
    admins = people.filter(role=Membership.Role.ADMIN)
    invited = open_invitations(now).filter(customer=customer, role=Membership.Role.ADMIN)
    if not admins.exists() and not invited.exists():
        yield _invite(
            customer,
            user,
            _("It has no administrator yet, who can invite the others."),
            Membership.Role.ADMIN,
        )
    elif people.exists() and not people.exclude(user__email="").exists():
        yield _invite(
            customer,
            user,
            _("None of its people has an e-mail address, so no mail reaches them."),
            Membership.Role.ADMIN,
        )


def _invite(customer: Customer, user: User, why: str, role: str) -> Step:
    if not permissions.may_manage_team(user, customer):
        return Step(f"{why} {_('A NOC admin can invite somebody.')}")
    address = f"{reverse('web:team', args=[customer.pk])}?{urlencode({'role': role})}#invite"
    return Step(why, _("Invite an administrator"), address)
