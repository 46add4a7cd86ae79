"""The caller's choice of mails, as on the page *Mails*."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import User
from portal.api.v1.etags import ConditionalRetrieveView, etag_of, if_match
from portal.api.v1.idempotency import once_per_key
from portal.api.v1.partial_update import changed_members
from portal.api.v1.permission_classes import caller
from portal.api.v1.serializers.mail_preferences import MailsSerializer
from portal.api.v1.serializers.strict_fields import check
from portal.core import clock
from portal.notifications.mail_preferences import mails_choose


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
