"""The mails that a user gets, by group."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import User
from portal.api.rest.etags import ConditionalRetrieveView, etag_of, if_match
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.partial_update import changed_members
from portal.api.rest.permission_classes import caller
from portal.api.rest.strict_fields import StrictBooleanField, StrictSerializer, check
from portal.core import clock
from portal.notifications.mail_recipients import groups_for, mails_choose, wanted_groups


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
        """Return a field for each group of the caller. Without a caller (in the schema), return fields for
        all groups.
        """
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
            # Pass the caller and not the row of the user, because the scopes of the caller's token may
            # exclude groups of the user.
            mails_choose(user=caller(request), wanted=wanted, now=clock.now())
            document = self.get_serializer(found).data
        return Response(document, headers={"ETag": etag_of(document)})
