"""NOC staff, and closing the account of somebody who leaves.

What gives the NOC's power is left to pages, for people who are signed in: a token that leaked makes no NOC
admin who stays when it is revoked.
"""

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts import permissions
from portal.accounts.models import User
from portal.accounts.noc_staff import noc_staff
from portal.accounts.second_factor import with_second_factor
from portal.api.v1.idempotency import once_per_key
from portal.api.v1.pagination import KeysetPagination
from portal.api.v1.permission_classes import IsNoc, IsNocAdmin, caller
from portal.api.v1.provenance import END, chosen
from portal.api.v1.serializers.people import PersonSerializer
from portal.api.v1.serializers.provenance import ProvenanceSerializer
from portal.audit.provenance import account_close_with, made_by
from portal.core import clock


class NocStaffView(generics.ListAPIView[User]):
    """The NOC staff, closed accounts too; for NOC staff."""

    permission_classes = [IsNoc]
    queryset = User.objects.none()
    serializer_class = PersonSerializer
    pagination_class = KeysetPagination

    def get_queryset(self) -> QuerySet[User]:
        return with_second_factor(noc_staff())


class PersonView(generics.RetrieveAPIView[User]):
    """An account: your own, and for NOC staff anybody's."""

    permission_classes = [IsAuthenticated]
    queryset = User.objects.none()
    serializer_class = PersonSerializer

    def get_queryset(self) -> QuerySet[User]:
        return _people(caller(self.request))


class PersonCloseView(APIView):
    """The end of an account, until NOC staff open it again on its page."""

    permission_classes = [IsAuthenticated]
    noc_alone = True

    @extend_schema(parameters=[END], request=None, responses={200: PersonSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Close an account, with its sessions, API tokens and password; for NOC admins. The last NOC admin
        and the last admin of a customer stay."""
        people = _people(caller(request))
        person, now = _managed(request, pk), clock.now()
        ending = chosen(request, made_by(person, viewer=caller(request), now=now))
        account_close_with(person=person, ending=ending, now=now)
        return Response(PersonSerializer(people.get(pk=pk)).data)


class PersonMadeView(APIView):
    """The things that a person made."""

    permission_classes = [IsAuthenticated]
    noc_alone = True

    @extend_schema(responses={200: ProvenanceSerializer})
    def get(self, request: Request, pk: int) -> Response:
        """The things that a person made, at pages and with tokens, and that stand; for NOC admins."""
        made = made_by(_managed(request, pk), viewer=caller(request), now=clock.now())
        return Response(ProvenanceSerializer(made).data)


def _managed(request: Request, pk: int) -> User:
    """One whose account the caller may close. Raises Http404, PermissionDenied."""
    person = get_object_or_404(_people(caller(request)), pk=pk)
    if not permissions.may_manage_people(caller(request)):
        raise PermissionDenied(IsNocAdmin.message)
    return person


def _people(user: User) -> QuerySet[User]:
    """The accounts that this user may know of by their ids."""
    found = User.objects.all() if user.is_noc else User.objects.filter(pk=user.pk)
    return with_second_factor(found)
