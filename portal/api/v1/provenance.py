"""The choice of the objects that end together with a token or an account. The caller makes the choice."""

from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request

from portal.accounts.models import Scope
from portal.api.language import in_readers_language
from portal.api.v1.authentication import needs_scope
from portal.api.v1.permission_classes import token_of
from portal.audit.provenance import Made

END = OpenApiParameter(
    "end",
    str,
    many=True,
    description="The ``key`` of an object that ends too; may be repeated. Webhooks are disabled, and need the"
    " scope webhooks. Enrolments become void, and their certificates are revoked.",
)


def chosen(request: Request, made: Made) -> Made:
    """Return those objects of ``made`` that the caller chose. Raises ValidationError, PermissionDenied."""
    keys = set(request.query_params.getlist("end"))
    if unknown := sorted(keys - made.keys):
        with in_readers_language():
            text = gettext("No object that was created there with this key still exists: %(key)s")
            text %= {"key": unknown[0]}
        raise ValidationError({"end": [text]})
    ending, token = made.chosen(keys), token_of(request)
    if ending.webhooks and token is not None and Scope.WEBHOOKS not in token.scopes:
        raise PermissionDenied(needs_scope(Scope.WEBHOOKS))
    return ending
