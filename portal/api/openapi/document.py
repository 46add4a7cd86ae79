"""The complete schema of the API, the rules for all requests, and the groups of operations.

Each process generates the schema once.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext_noop as _
from drf_spectacular.contrib.django_filters import DjangoFilterExtension
from drf_spectacular.generators import SchemaGenerator
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

# Pairs of title and text, in English. The page translates both.
RULES = (
    (
        _("Authentication"),
        _(
            "Send an API token with every request: `Authorization: Bearer ll_…`. It acts for the user "
            "who created it, within its scopes. Every token may read. Writing needs the scope `order` or "
            "`noc`; changing a team or a webhook needs the scope `team` or `webhooks`."
        ),
    ),
    (
        _("Errors"),
        _(
            "Every 4xx and 5xx is a problem document (RFC 9457): what went wrong, why, what to do next,"
            " and a request id to quote. Its `type` is the address of an explanation; the part after the"
            " `#` never changes."
        ),
    ),
    (
        _("Pagination"),
        _(
            "The response of a list has `results` and `next`: request the address in `next` until it is"
            " null. Unknown filters are refused."
        ),
    ),
    (
        _("Idempotency"),
        _(
            "Send an `Idempotency-Key`, such as a UUID, with a write. If the response is lost, send the"
            " same request with the same key: it is done once, and for 24 hours you get the first response"
            " again."
        ),
    ),
    (
        _("ETags"),
        _(
            "Responses with one object have an `ETag`. Send it as `If-Match` with a change: if somebody "
            "else has changed the object since, the response is 412. Send it as `If-None-Match` with GET: "
            "if the object is unchanged, the response is 304 without a body."
        ),
    ),
    (
        _("Rate limits"),
        _(
            "The number of requests per minute is limited for each token, and for all tokens of a user"
            " together. Above the limit the response is 429, with the seconds to wait in `Retry-After`."
        ),
    ),
    (
        _("Orders"),
        _(
            "The response to an order is 202: the portal has accepted it and carries it out afterwards. "
            "`Location` is the address to follow it at."
        ),
    ),
    (
        _("Values"),
        _(
            "Sizes are in bytes, rates in bit/s, times in UTC. Unknown members and control characters in"
            " texts are refused."
        ),
    ),
)
DESCRIPTION = "Order, change and watch virtual leased lines.\n\n" + "\n".join(
    f"* **{title}.** {text}" for title, text in RULES
)


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of ``/api/v1``."""
    # Otherwise each process searches for GDAL with a compiler, because filters could be geographic.
    # drf-spectacular has no setting for it.
    DjangoFilterExtension._has_gis = False  # type: ignore[attr-defined]
    with translation.override(settings.LANGUAGE_CODE):  # readers of all languages share the cached document
        schema: dict[str, Any] = SchemaGenerator().get_schema(public=True)
        return schema


_MARK = "x-spec-enum-id"


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the rules for all requests to the generated schema, and make the schema readable by generators.

    drf-spectacular calls this after generation. The marks that drf-spectacular adds to enumerations are
    removed, so that choices stay where they are used and need no names. A choice between two kinds of text
    becomes a single text, because generators cannot distinguish the two kinds by their type.
    """
    result["info"]["description"] = DESCRIPTION
    _rewrite(result)
    return result


def _rewrite(part: Any) -> None:
    if isinstance(part, dict):
        part.pop(_MARK, None)
        if _only_texts(part.get("oneOf")):
            choices = part.pop("oneOf")
            part["type"] = "string"
            part["maxLength"] = max(choice["maxLength"] for choice in choices)
        for inner in part.values():
            _rewrite(inner)
    elif isinstance(part, list):
        for inner in part:
            _rewrite(inner)


def _only_texts(choices: Any) -> bool:
    """Return whether all choices are texts of limited length, for example an address or ""."""
    return isinstance(choices, list) and all(
        isinstance(choice, dict) and choice.get("type") == "string" and "maxLength" in choice
        for choice in choices
    )


@dataclass(frozen=True, slots=True)
class Group:
    """A group of operations, such as the operations on ports.

    ``slug`` is the last part of the address of the group's page. ``title`` and ``about`` are in English; the
    page translates them.
    """

    slug: str
    title: str
    about: str
    tags: tuple[str, ...]


FOR_EVERYBODY = (
    Group(
        "lines",
        _("Lines"),
        _("Order, change, suspend and remove lines; read their state, traffic and tests."),
        ("vlls", "vlls.csv", "months.csv", "trouble-reports"),
    ),
    Group("orders", _("Orders"), _("Follow an order until it has ended."), ("orders", "jobs")),
    Group(
        "holds",
        _("Reservations"),
        _("Reserve VLANs and bandwidth for some minutes before you order."),
        ("holds",),
    ),
    Group("ports", _("Ports and sites"), _("Where lines can begin and end."), ("ports", "sites")),
    Group(
        "webhooks",
        _("Webhooks"),
        _("Send events to your own systems."),
        ("webhooks", "webhook-deliveries", "event-types"),
    ),
    Group("team", _("Team"), _("The people of a customer, and who is invited."), ("members", "invitations")),
    Group("tokens", _("API tokens"), _("Create and revoke the tokens that programs use."), ("tokens",)),
    Group("mails", _("Mails"), _("Which notifications you get."), ("mail-preferences",)),
)
FOR_THE_NOC = (
    Group(
        "routers",
        _("Routers"),
        _("Routers, their certificates and maintenance, and how an agent enrols."),
        ("routers", "enroll"),
    ),
    Group(
        "found-lines",
        _("Found lines"),
        _("Lines on the routers that the portal does not manage."),
        ("found-lines",),
    ),
    Group("links", _("Backbone links"), _("The links between routers, and their losses."), ("links",)),
    Group(
        "customers",
        _("Customers"),
        _("Customers, and the bandwidth that each may order without approval."),
        ("customers",),
    ),
    Group(
        "people",
        _("People"),
        _("Accounts, NOC staff, and the objects that a person has created."),
        ("people", "noc-staff"),
    ),
    Group(
        "pools",
        _("Pools"),
        _("The use of VNIs, GRE keys, ports and cores, and reserved VNIs."),
        ("pools", "vni-ranges"),
    ),
    Group("imports", _("Imports"), _("Bring your network in from tables."), ("imports",)),
    Group("netbox", _("NetBox"), _("State of the exchange with NetBox."), ("netbox",)),
)
GROUPS = {group.slug: group for group in (*FOR_EVERYBODY, *FOR_THE_NOC)}


class SchemaView(APIView):
    """The OpenAPI 3.1 document. It contains no secrets and is public."""

    permission_classes = [AllowAny]
    schema = None

    def get(self, request: Request) -> Response:
        return Response(document())
