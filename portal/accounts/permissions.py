"""Permission rules, as functions that views declare and operations check.

A closed account has no permissions, regardless of its roles. Scheduled work checks the rules again when it
runs.
"""

from collections.abc import Collection

from django.db.models import Q, QuerySet

from portal.accounts.models import Customer, Membership, User
from portal.core.db.statements import CompiledQuery

_ORDERING_ROLES = (Membership.Role.OPERATOR, Membership.Role.ADMIN)
_ORDERING_MEMBERSHIPS = CompiledQuery[Membership](
    lambda user, customer: Membership.objects.filter(user=user, customer=customer, role__in=_ORDERING_ROLES)
)


def may_see(user: User, customer: Customer) -> bool:
    """Return whether the user may see the customer. NOC staff see all customers; members see their own."""
    return user.is_noc or (user.is_active and user.memberships.filter(customer=customer).exists())


def may_order(user: User, customer: Customer) -> bool:
    """Return whether the user may order for the customer.

    Operators and admins of the customer and NOC staff may order. Nobody may order for a retired customer.
    """
    return customer.retired_at is None and (
        user.is_noc or (user.is_active and bool(_ORDERING_MEMBERSHIPS(user.pk, customer.pk)))
    )


def may_order_each(pairs: Collection[tuple[User, Customer]]) -> list[bool]:
    """Return the result of ``may_order`` for each pair of user and customer, with a single query."""
    members = Membership.objects.filter(
        user__in={user.pk for user, _ in pairs},
        user__is_active=True,
        customer__in={customer.pk for _, customer in pairs},
        role__in=_ORDERING_ROLES,
    )
    ordering = set(members.values_list("user_id", "customer_id"))
    return [
        customer.retired_at is None and (user.is_noc or (user.pk, customer.pk) in ordering)
        for user, customer in pairs
    ]


def may_sign_in(user: User) -> bool:
    """Return whether the account is open. This is enough for pages that show only the user's own data."""
    return user.is_active


def orderable_customers(user: User) -> QuerySet[Customer]:
    """Return the customers that this user may order for."""
    customers = Customer.objects.filter(retired_at__isnull=True)
    if user.is_noc:
        return customers
    return customers.filter(_is_open(user), memberships__user=user, memberships__role__in=_ORDERING_ROLES)


def may_order_for_anyone(user: User) -> bool:
    """Return whether the user may order for at least one customer. NOC staff always may."""
    return user.is_noc or orderable_customers(user).exists()


def may_manage_team(user: User, customer: Customer) -> bool:
    """Return whether the user may manage the members of the customer.

    The customer's admins may, and so may NOC admins. Nobody may manage the members of a retired customer.
    """
    return customer.retired_at is None and (
        user.is_noc_admin
        or (
            user.is_active and user.memberships.filter(customer=customer, role=Membership.Role.ADMIN).exists()
        )
    )


def may_manage_teams(user: User) -> bool:
    """Return whether the user manages at least one customer and its webhooks. NOC admins always do."""
    return user.is_noc_admin or managed_customers(user).exists()


def managed_customers(user: User) -> QuerySet[Customer]:
    """Return the customers whose members and webhooks this user manages."""
    customers = Customer.objects.filter(retired_at__isnull=True)
    if user.is_noc_admin:
        return customers
    return customers.filter(_is_open(user), memberships__user=user, memberships__role=Membership.Role.ADMIN)


def may_manage_webhooks(user: User, customer: Customer | None) -> bool:
    """Return whether the user may manage the webhooks of ``customer``. None means the NOC's own webhooks.

    To manage a customer's webhooks, the user needs the permission to manage the customer's members, because
    webhooks send all events of the customer. Only NOC admins may manage the NOC's own webhooks.
    """
    return user.is_noc_admin if customer is None else may_manage_team(user, customer)


def may_see_webhooks(user: User, customer: Customer | None) -> bool:
    """Return whether the user may see the webhooks of ``customer``. None means the NOC's own webhooks.

    Users who manage the webhooks may. NOC staff may too, for troubleshooting.
    """
    return user.is_noc or may_manage_webhooks(user, customer)


def visible_customers(user: User) -> QuerySet[Customer]:
    """Return the customers that this user may see."""
    if user.is_noc:
        return Customer.objects.all()
    return Customer.objects.filter(_is_open(user), memberships__user=user)


def _is_open(user: User) -> Q:
    """Return a filter that matches all rows if the account is open, and no rows if it is closed."""
    return Q() if user.is_active else Q(pk__in=[])


def may_run_the_network(user: User) -> bool:
    """Return whether the user is NOC staff, who operate the network and see routers, agents and reports."""
    return user.is_noc


def may_manage_people(user: User) -> bool:
    """Return whether the user is a NOC admin, who may manage NOC staff, accounts and lost second factors."""
    return user.is_noc_admin


def may_enrol_routers(user: User) -> bool:
    """Return whether the user is a NOC admin, who may enrol routers.

    A router's certificate remains valid even after the account or token that requested the enrolment is
    closed or revoked.
    """
    return user.is_noc_admin


def may_let_go(user: User, customer: Customer) -> bool:
    """Return whether the user is a NOC admin, who may release any customer's line from the portal."""
    return user.is_noc_admin


def may_remove_from_the_network(user: User) -> bool:
    """Return whether the user is a NOC admin, who may remove objects from the inventory."""
    return user.is_noc_admin


def customers_named(user: User) -> Q:
    """Return a filter for the rows of this user's customers, in addition to the tenant scope.

    The filter does not change the result, but makes the query faster. With constant ids, PostgreSQL knows how
    many rows each customer has. It can then read a page in the order of an index, instead of sorting all rows
    that the user may see.
    """
    return Q() if user.is_noc else Q(customer__in=list(user.memberships.values_list("customer", flat=True)))
