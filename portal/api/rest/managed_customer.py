"""Find the customer that a request names, among the customers that the caller manages."""

from django.utils.translation import gettext_noop as _
from rest_framework.exceptions import PermissionDenied, ValidationError

from portal.accounts import permissions
from portal.accounts.models import Customer, User

ADMINS_ONLY = _("Only admins of the customer and NOC admins may do this.")


def managed_customer(user: User, name: str | None) -> Customer:
    """Return the customer with this name. With ``name=None``, return the only customer that the user manages.

    Raises PermissionDenied, ValidationError.
    """
    managed = permissions.managed_customers(user)
    if name is None:
        found = list(managed[:2])
        if not found:
            raise PermissionDenied(ADMINS_ONLY)
        if len(found) > 1:
            raise ValidationError(
                {"customer": [_("Name one of the customers that you manage.")]}, code="required"
            )
        return found[0]
    customer = managed.filter(name=name).first()
    if customer is None:
        raise ValidationError(
            {"customer": [_("You manage no customer with this name.")]}, code="does_not_exist"
        )
    return customer
