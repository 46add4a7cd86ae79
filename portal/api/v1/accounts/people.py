"""Accounts in responses, for the NOC and for their owners, and the mails that a user gets."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts import permissions
from portal.accounts.models import User
from portal.accounts.people import noc_staff
from portal.accounts.sign_in import with_second_factor
from portal.api.rest.access_control import IsNoc, IsNocAdmin, ProvesIdentity, caller
from portal.api.rest.conditional_requests import etag_of, if_match
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import KeysetPagination
from portal.api.rest.request_bodies import StrictBooleanField, StrictSerializer, changed_members, check
from portal.api.rest.views import ConditionalRetrieveView, VisibleRowView
from portal.api.v1.accounts.tokens import END, ProvenanceSerializer, chosen
from portal.audit.provenance import account_close_with, made_by
from portal.core import clock
from portal.notifications.mail_recipients import groups_for, mails_choose, wanted_groups


class PersonSerializer(serializers.ModelSerializer[User]):
    """An account. ``noc_role``: none, noc or nocAdmin."""

    full_name = serializers.CharField(source="get_full_name")
    email = serializers.CharField(help_text="Empty if unknown.")
    is_open = serializers.BooleanField(source="is_active", help_text="Whether its owner can sign in.")
    last_sign_in = serializers.DateTimeField(source="last_login", allow_null=True)
    has_second_factor = serializers.BooleanField()

    class Meta:
        model = User
        fields: tuple[str, ...] = (
            "id",
            "username",
            "full_name",
            "email",
            "noc_role",
            "is_open",
            "last_sign_in",
            "has_second_factor",
        )
        read_only_fields = fields


def _people(user: User) -> QuerySet[User]:
    """Return the accounts that this user may read by their ids."""
    found = User.objects.all() if user.is_noc else User.objects.filter(pk=user.pk)
    return with_second_factor(found)


class NocStaffView(generics.ListAPIView[User]):
    """The NOC staff, including closed accounts. For NOC staff."""

    permission_classes = [IsNoc]
    queryset = User.objects.none()
    serializer_class = PersonSerializer
    pagination_class = KeysetPagination

    def get_queryset(self) -> QuerySet[User]:
        return with_second_factor(noc_staff())


class PersonView(VisibleRowView[User]):
    """An account: your own, or any account for NOC staff."""

    permission_classes = [IsAuthenticated]
    serializer_class = PersonSerializer
    rows = _people


class PersonCloseView(APIView):
    permission_classes = [IsAuthenticated, ProvesIdentity]
    noc_only = True

    @extend_schema(parameters=[END], request=None, responses={200: PersonSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Close an account. For NOC admins. Its sessions, API tokens and password become invalid.

        The accounts of the last NOC admin and of a customer's last admin cannot be closed.
        """
        people = _people(caller(request))
        person, now = _managed(request, pk), clock.now()
        ending = chosen(request, made_by(person, viewer=caller(request), now=now))
        account_close_with(person=person, ending=ending, now=now)
        return Response(PersonSerializer(people.get(pk=pk)).data)


class PersonMadeView(APIView):
    permission_classes = [IsAuthenticated]
    noc_only = True

    @extend_schema(responses={200: ProvenanceSerializer})
    def get(self, request: Request, pk: int) -> Response:
        """The existing objects that a person created, on pages and with tokens. For NOC admins."""
        made = made_by(_managed(request, pk), viewer=caller(request), now=clock.now())
        return Response(ProvenanceSerializer(made).data)


def _managed(request: Request, pk: int) -> User:
    """Return a person whose account the caller may close. Raises Http404, PermissionDenied."""
    person = get_object_or_404(_people(caller(request)), pk=pk)
    if not permissions.may_manage_people(caller(request)):
        raise PermissionDenied(IsNocAdmin.message)
    return person


def _wanted(about: str) -> StrictBooleanField:
    return StrictBooleanField(required=False, help_text=about)


class MailsSerializer(StrictSerializer):
    """Whether you get mails, for each group that concerns you."""

    orders = _wanted("Orders: accepted, waiting for approval, changes done, rejected, cancelled.")
    failures = _wanted("Orders that failed.")
    lines = _wanted("Lines that are in service, suspended or removed.")
    status = _wanted("Lines that are down, or up again, for two minutes.")
    reports = _wanted("The monthly report with the 95th percentiles.")
    webhooks = _wanted("Webhooks that were disabled because they fail; for admins.")
    noc = _wanted("Orders to approve, overdue orders, drift; for NOC staff.")

    def get_fields(self) -> Any:
        """Return a field for each group of the caller; for all groups if there is no caller (schema)."""
        fields = super().get_fields()
        reader = getattr(self.context.get("request"), "user", None)
        if not isinstance(reader, User):
            return fields
        concern = groups_for(reader)
        return {name: field for name, field in fields.items() if name in concern}

    def to_representation(self, instance: User) -> dict[str, bool]:
        wanted = wanted_groups(instance)
        return {name: name in wanted for name in self.get_fields()}


class MailsView(ConditionalRetrieveView[User]):
    """The mails that you get, by group."""

    permission_classes = [IsAuthenticated]
    queryset = User.objects.none()
    serializer_class = MailsSerializer

    def get_queryset(self) -> QuerySet[User]:
        return User.objects.filter(pk=caller(self.request).pk)

    def get_object(self) -> User:
        return caller(self.request)

    @extend_schema(request=MailsSerializer, responses={200: MailsSerializer})
    @once_per_key
    @if_match(required=True)
    def patch(self, request: Request, found: User) -> Response:
        """Choose the mails that you get. Groups that you leave out stay as they are."""
        document = self.get_serializer(found).data
        body = changed_members(request.data, document, MailsSerializer(context=self.get_serializer_context()))
        if body:
            choice = self.get_serializer(data=body)
            check(choice)
            chosen = {**document, **choice.validated_data}
            wanted = [name for name, is_wanted in chosen.items() if is_wanted]
            # Pass the caller and not the user's row: the token's scopes may exclude groups of the user.
            mails_choose(user=caller(request), wanted=wanted, now=clock.now())
            document = self.get_serializer(found).data
        return Response(document, headers={"ETag": etag_of(document)})
