"""The models of access: users, customers, memberships and API tokens."""

from typing import Any

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower, Upper
from django.utils.translation import gettext_lazy as _

from portal.accounts.cidr_field import CidrField


class Customer(models.Model):
    """A tenant: every port, VLL and order belongs to at most one."""

    name = models.CharField(max_length=100, unique=True)
    created_at = models.DateTimeField()
    # Orders above this rate (bit/s) need the NOC's approval; null: no order does.
    approve_up_to_bps = models.BigIntegerField(null=True, blank=True)
    # How long a removal can be undone, in seconds; null: the setting of the deployment.
    cooling_off_s = models.PositiveIntegerField(null=True, blank=True)
    # Since when the customer is kept for the record only: nobody orders, and its members do not sign in.
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
    """A person. NOC staff see every tenant; everyone else sees the customers they are members of."""

    class NocRole(models.TextChoices):
        NONE = "none"
        NOC = "noc"
        NOC_ADMIN = "nocAdmin"

    noc_role = models.CharField(max_length=10, choices=NocRole, default=NocRole.NONE)
    # The customer whose retirement closed this account; undoing the retirement reopens the account.
    closed_with = models.ForeignKey(
        Customer, on_delete=models.SET_NULL, null=True, blank=True, related_name="closed_accounts"
    )
    # When the stored hash last changed; the audit trail shows this time instead of the hash. The cause is a
    # new password, or a stronger hash of the same one. Only a trigger writes it (sql/password_set_at.sql).
    password_set_at = models.DateTimeField(null=True, editable=False)
    # The language of pages and mails, one of LANGUAGES; "" until the user signs in or chooses one.
    language = models.CharField(max_length=10, blank=True, default="", db_default="")
    # Rights that the API token of this request lacks; never stored.
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
            # Single sign-on and invitations find users by the address.
            models.UniqueConstraint(Lower("email"), condition=~Q(email=""), name="one_user_per_address"),
            # Users may type their name in any case: of two such names neither would be found. UPPER matches
            # the lookup, because Σ has two small letters.
            models.UniqueConstraint(Upper("username"), name="one_user_per_name"),
        ]

    @property
    def is_noc(self) -> bool:
        return self.is_active and self.noc_role != self.NocRole.NONE and not self.noc_powers_left_behind

    @property
    def is_noc_admin(self) -> bool:
        return self.is_noc and self.noc_role == self.NocRole.NOC_ADMIN


class Membership(models.Model):
    """A user's role with a customer."""

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
    """A mailed offer of a role. Its link is signed, works once and until ``expires_at``."""

    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Membership.Role)
    invited_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    # The API token that made the invitation, which ends with it; null: made on a page.
    made_with = models.ForeignKey(
        "ApiToken", on_delete=models.SET_NULL, null=True, blank=True, related_name="invitations"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    # A sender has claimed the mail until then. Afterwards it is sent again unless sent_at is set.
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
    """The permitted uses of a token. The rights of its user limit it further."""

    READ = "read"
    ORDER = "order"
    NOC = "noc"
    # Members of a customer and their roles. Roles that such a token grants stay when it is revoked.
    TEAM = "team"
    # Webhook addresses. A receiver gets events as long as the webhook exists, even if the token is revoked.
    WEBHOOKS = "webhooks"


class ApiToken(models.Model):
    """A secret that acts as its user. Only the peppered HMAC of the secret is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    # The token that made this one, which ends with it; null: made on a page.
    made_with = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="offspring"
    )
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.BinaryField(max_length=32)
    scopes: Any = ArrayField(models.CharField(max_length=10, choices=Scope))
    # Networks from which the token may be used; empty: anywhere.
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
