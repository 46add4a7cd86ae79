"""Who may do what, as predicates that views declare and operations ask."""

from portal.accounts.models import Customer, Membership, User

_ORDERING_ROLES = (Membership.Role.OPERATOR, Membership.Role.ADMIN)


def may_see(user: User, customer: Customer) -> bool:
    """NOC staff see every customer, members their own."""
    return user.is_noc or user.memberships.filter(customer=customer).exists()


def may_order(user: User, customer: Customer) -> bool:
    """Operators and admins of the customer, and NOC staff on its behalf."""
    return user.is_noc or user.memberships.filter(customer=customer, role__in=_ORDERING_ROLES).exists()
