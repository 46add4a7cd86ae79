"""The members of a customer and its invitations."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_noop as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts import invitations, people, permissions
from portal.accounts.models import Customer, Invitation, Membership, Scope, User
from portal.api.rest.access_control import ProvesIdentity, caller, token_of
from portal.api.rest.conditional_requests import etag_of, if_match
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import InvitationFilters, KeysetPagination, MemberFilters, NewestVllFirst
from portal.api.rest.request_bodies import StrictLookupField, StrictSerializer, changed_members, validated
from portal.api.rest.views import ConditionalRetrieveView, VisibleListView, VisibleRowView, located
from portal.api.v1.accounts.tokens import END, ProvenanceSerializer, chosen
from portal.audit.provenance import made_by_member, member_remove_with
from portal.core import clock


class StrictEmailField(serializers.EmailField):
    """A mail address as a JSON string."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class MemberSerializer(serializers.ModelSerializer[Membership]):
    """A membership. ``user``: the id of the person, which is the same in every team."""

    customer = serializers.CharField(source="customer.name")
    username = serializers.CharField(source="user.username")
    full_name = serializers.CharField(source="user.get_full_name")
    email = serializers.CharField(source="user.email", help_text="Empty if unknown.")

    class Meta:
        model = Membership
        fields: tuple[str, ...] = ("id", "customer", "user", "username", "full_name", "email", "role")
        read_only_fields = fields


class MemberChangeSerializer(StrictSerializer):
    """A change of a membership."""

    role = serializers.ChoiceField(choices=Membership.Role.choices)


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An invitation. Only the mail contains the link. ``sent_at`` is null until a mail server accepts the
    mail.
    """

    customer = serializers.CharField(source="customer.name")
    invited_by = serializers.CharField(source="invited_by.username")

    class Meta:
        model = Invitation
        fields: tuple[str, ...] = (
            "id",
            "customer",
            "email",
            "role",
            "invited_by",
            "created_at",
            "expires_at",
            "sent_at",
        )
        read_only_fields = fields


class InvitationCreateSerializer(StrictSerializer):
    """A new invitation. ``customer``: a customer's name. You may omit it if you manage only one customer."""

    customer = StrictLookupField(max_length=100, allow_null=True, required=False, default=None)
    email = StrictEmailField(max_length=254)
    role = serializers.ChoiceField(choices=Membership.Role.choices)


def check_manages(request: Request, customer: Customer) -> None:
    """Raise PermissionDenied unless the caller is an admin of the customer or a NOC admin."""
    if not permissions.may_manage_team(caller(request), customer):
        raise PermissionDenied(ADMINS_ONLY)


class MembersView(VisibleListView[Membership]):
    """The members of your customers, and their roles. NOC staff read the members of all customers."""

    permission_classes = [IsAuthenticated]
    serializer_class = MemberSerializer
    filterset_class = MemberFilters
    pagination_class = KeysetPagination
    rows = people.members


class MemberView(ConditionalRetrieveView[Membership]):
    """One membership."""

    permission_classes = [IsAuthenticated, ProvesIdentity]
    writes_with = Scope.TEAM
    serializer_class = MemberSerializer
    rows = people.members

    @extend_schema(request=MemberChangeSerializer, responses={200: MemberSerializer})
    @once_per_key
    @if_match(required=True)
    def patch(self, request: Request, found: Membership) -> Response:
        """Change the role of a member. For admins; a token needs the scope team. The last admin of a customer
        must stay admin. A role that is equal to the current role changes nothing.
        """
        check_manages(request, found.customer)
        document = self.get_serializer(found).data
        body = changed_members(request.data, document, MemberChangeSerializer())
        if body:
            changes = validated(MemberChangeSerializer, body)
            people.role_change(membership=found, role=changes["role"], now=clock.now())
            found.refresh_from_db(fields=["role"])
            document = self.get_serializer(found).data
        return Response(document, headers={"ETag": etag_of(document)})

    @extend_schema(parameters=[END], request=None, responses={204: None})
    @once_per_key
    @if_match(required=False)
    def delete(self, request: Request, found: Membership) -> Response:
        """Remove a member. For admins; a token needs the scope team. The account remains. The last admin of a
        customer cannot be removed.
        """
        check_manages(request, found.customer)
        now = clock.now()
        ending = chosen(request, made_by_member(found, viewer=caller(request), now=now))
        member_remove_with(membership=found, ending=ending, now=now)
        return Response(status=status.HTTP_204_NO_CONTENT)


class MemberMadeView(APIView):
    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: ProvenanceSerializer})
    def get(self, request: Request, pk: int) -> Response:
        """The existing objects that a member created for the customer. For admins."""
        found = get_object_or_404(people.members(caller(request)), pk=pk)
        check_manages(request, found.customer)
        return Response(
            ProvenanceSerializer(made_by_member(found, viewer=caller(request), now=clock.now())).data
        )


class InvitationsView(VisibleListView[Invitation]):
    """The open invitations of the customers that you manage, newest first."""

    permission_classes = [IsAuthenticated, ProvesIdentity]
    writes_with = Scope.TEAM
    serializer_class = InvitationSerializer
    filterset_class = InvitationFilters
    pagination_class = NewestVllFirst

    def visible_rows(self) -> QuerySet[Invitation]:
        return invitations.managed_invitations(caller(self.request), now=clock.now())

    @extend_schema(request=InvitationCreateSerializer, responses={201: InvitationSerializer})
    @once_per_key
    def post(self, request: Request) -> Response:
        """Invite somebody by mail. For admins; a token needs the scope team. The number of invitations per
        day is limited for each customer and for each address.
        """
        body = validated(InvitationCreateSerializer, request.data)
        customer = managed_customer(caller(request), body.pop("customer"))
        made = invitations.invite(
            by=caller(request), customer=customer, made_with=token_of(request), now=clock.now(), **body
        )
        return located(InvitationSerializer(made).data, "invitation", made.pk, request=request)


class InvitationView(VisibleRowView[Invitation]):
    """One open invitation. 404 after its end."""

    permission_classes = [IsAuthenticated]
    writes_with = Scope.TEAM
    serializer_class = InvitationSerializer

    def visible_rows(self) -> QuerySet[Invitation]:
        return invitations.invitations(caller(self.request), now=clock.now())

    def get_object(self) -> Invitation:
        found = super().get_object()
        check_manages(self.request, found.customer)
        return found

    @extend_schema(request=None, responses={204: None})
    @once_per_key
    def delete(self, request: Request, pk: int) -> Response:
        """Withdraw an invitation. For admins; a token needs the scope team. Its link becomes invalid."""
        invitations.invitation_revoke(invitation=self.get_object(), now=clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


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
