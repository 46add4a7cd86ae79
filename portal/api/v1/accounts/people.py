"""Accounts in responses, for the NOC and for their owners."""

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
from portal.accounts.second_factor import with_second_factor
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.pagination import KeysetPagination
from portal.api.rest.permission_classes import IsNoc, IsNocAdmin, ProvesIdentity, caller
from portal.api.v1.accounts.provenance import END, ProvenanceSerializer, chosen
from portal.audit.provenance import account_close_with, made_by
from portal.core import clock


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


class NocStaffView(generics.ListAPIView[User]):
    """The NOC staff, including closed accounts. For NOC staff."""

    permission_classes = [IsNoc]
    queryset = User.objects.none()
    serializer_class = PersonSerializer
    pagination_class = KeysetPagination

    def get_queryset(self) -> QuerySet[User]:
        return with_second_factor(noc_staff())


class PersonView(generics.RetrieveAPIView[User]):
    """An account: your own, or any account for NOC staff."""

    permission_classes = [IsAuthenticated]
    queryset = User.objects.none()
    serializer_class = PersonSerializer

    def get_queryset(self) -> QuerySet[User]:
        return _people(caller(self.request))


class PersonCloseView(APIView):
    """The closing of an account. NOC staff can open it again on its page."""

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
    """The objects that a person created."""

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


def _people(user: User) -> QuerySet[User]:
    """Return the accounts that this user may read by their ids."""
    found = User.objects.all() if user.is_noc else User.objects.filter(pk=user.pk)
    return with_second_factor(found)
