"""The models of people: customers, users, memberships, invitations and API tokens."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower, Upper
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

Network = IPv4Network | IPv6Network


def network_of(text: str) -> Network:
    """Return the network for a text such as ``192.0.2.0/24``, or for a single address.

    Raises ValidationError, also if host bits are set.
    """
    try:
        return ip_network(text.strip())
    except ValueError as error:
        raise ValidationError(
            gettext("%(text)s is not a network such as 192.0.2.0/24.") % {"text": text}
        ) from error


class CidrField(models.Field):  # type: ignore[type-arg]
    """PostgreSQL's ``cidr``: an IPv4 or IPv6 network without host bits."""

    def db_type(self, connection: Any) -> str:
        return "cidr"

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Network | None:
        return None if value is None else ip_network(value)

    def to_python(self, value: Any) -> Any:
        return network_of(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else str(value)


class Customer(models.Model):
    """A tenant of the portal. Each port, VLL and order belongs to at most one customer."""

    name = models.CharField(max_length=100, unique=True)
    created_at = models.DateTimeField()
    # Orders above this rate (bit/s) need the NOC's approval. Null: no order needs approval.
    approve_up_to_bps = models.BigIntegerField(null=True, blank=True)
    # The time in seconds during which a removal can be undone. Null: the value in the settings.
    cooling_off_s = models.PositiveIntegerField(null=True, blank=True)
    # When the customer was retired. A retired customer is kept for the record: nobody can order for it, and
    # members who belong to no other customer cannot sign in.
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(approve_up_to_bps__isnull=True) | Q(approve_up_to_bps__gte=0),
                name="approval_limit_is_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(cooling_off_s__isnull=True) | Q(cooling_off_s__lte=90 * 86400),
                name="cooling_off_lasts_90_days_at_most",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class User(AbstractUser):
    """A user. NOC staff see all customers. Other users see the customers that they are members of."""

    class NocRole(models.TextChoices):
        NONE = "none"
        NOC = "noc"
        NOC_ADMIN = "nocAdmin"

    noc_role = models.CharField(max_length=10, choices=NocRole, default=NocRole.NONE)
    # The customer whose retirement closed this account. If the retirement is undone, the account is reopened.
    closed_with = models.ForeignKey(
        Customer, on_delete=models.SET_NULL, null=True, blank=True, related_name="closed_accounts"
    )
    # When the stored password hash last changed: by a new password, or by a stronger hash of the same
    # password. The audit trail shows this time instead of the hash. Only a trigger writes it
    # (sql/password_set_at.sql).
    password_set_at = models.DateTimeField(null=True, editable=False)
    # The language of pages and mails, one of LANGUAGES; "" until the user signs in or chooses one.
    language = models.CharField(max_length=10, blank=True, default="", db_default="")
    # Whether this request uses an API token without the scope ``noc``, so that the user's NOC rights do not
    # apply. The value is never stored.
    noc_powers_left_behind = False

    class Meta(AbstractUser.Meta):
        constraints = [
            models.CheckConstraint(
                condition=Q(noc_role__in=["none", "noc", "nocAdmin"]), name="noc_role_is_a_known_role"
            ),
            models.CheckConstraint(
                condition=Q(closed_with__isnull=True) | Q(is_active=False),
                name="an_account_that_was_closed_is_not_active",
            ),
            # Single sign-on and invitations find users by their address.
            models.UniqueConstraint(Lower("email"), condition=~Q(email=""), name="one_user_per_address"),
            # Users may type their names in upper or lower case. If the names of two users differed only in
            # case, neither user would be found. The lookup uses UPPER, because Σ has two lower-case letters.
            models.UniqueConstraint(Upper("username"), name="one_user_per_name"),
        ]

    @property
    def is_noc(self) -> bool:
        return self.is_active and self.noc_role != self.NocRole.NONE and not self.noc_powers_left_behind

    @property
    def is_noc_admin(self) -> bool:
        return self.is_noc and self.noc_role == self.NocRole.NOC_ADMIN


class Membership(models.Model):
    """The membership of a user in a customer, with a role."""

    class Role(models.TextChoices):
        VIEWER = "viewer", _("Viewer")
        OPERATOR = "operator", _("Operator")
        ADMIN = "admin", _("Admin")

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships", db_index=False)
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "customer"], name="one_membership_per_user_and_customer"),
            models.CheckConstraint(
                condition=Q(role__in=["viewer", "operator", "admin"]), name="membership_role_is_a_known_role"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.customer}"


class Invitation(models.Model):
    """An offer of a role, sent by mail. Its signed link works once, and only until ``expires_at``."""

    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Membership.Role)
    invited_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    # The API token that created the invitation; null if it was created on a page. If the token is revoked,
    # the invitation is revoked too.
    made_with = models.ForeignKey(
        "ApiToken", on_delete=models.SET_NULL, null=True, blank=True, related_name="invitations"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    # The end of a sender's claim. After this time, the mail is sent again if ``sent_at`` is still null.
    sending_until = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "customer",
                Lower("email"),
                condition=Q(accepted_at__isnull=True, revoked_at__isnull=True),
                name="one_open_invitation_per_customer_and_address",
            ),
            models.CheckConstraint(
                condition=Q(role__in=["viewer", "operator", "admin"]), name="invitation_role_is_a_known_role"
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="an_invitation_expires_after_it_is_made"
            ),
            models.CheckConstraint(
                condition=Q(accepted_at__isnull=True) | Q(revoked_at__isnull=True),
                name="an_invitation_is_accepted_or_revoked",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email} as {self.role} of {self.customer}"


class Scope(models.TextChoices):
    """The permitted uses of a token. A token never has more rights than its user."""

    READ = "read"
    ORDER = "order"
    NOC = "noc"
    # Manage the members of a customer and their roles. Roles that the token grants remain when it is revoked.
    TEAM = "team"
    # Manage webhooks. A webhook that the token creates continues to work when the token is revoked.
    WEBHOOKS = "webhooks"


class ApiToken(models.Model):
    """An API token of a user. Only a peppered HMAC of its secret is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    # The token that created this token; null if it was created on a page. If that token is revoked, this
    # token is revoked too.
    made_with = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="offspring"
    )
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.BinaryField(max_length=32)
    scopes: Any = ArrayField(models.CharField(max_length=10, choices=Scope))
    # The networks from which the token may be used. Empty: it may be used from any address.
    allowed_networks: Any = ArrayField(CidrField(), default=list, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(expires_at__isnull=True) | Q(expires_at__gt=F("created_at")),
                name="a_token_expires_after_it_is_made",
            ),
            models.CheckConstraint(
                condition=Q(scopes__contained_by=["read", "order", "noc", "team", "webhooks"])
                & Q(scopes__len__gt=0),
                name="a_token_has_known_scopes",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.user}"
