"""Imports of tables, with a higher size limit for the bodies of their requests."""

from collections.abc import Callable
from functools import wraps
from io import BytesIO
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_noop as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import Scope
from portal.api.rest.access_control import IsNoc, caller, needs_scope, token_of
from portal.api.rest.csv_response import CsvRenderer, csv_response
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import KeysetPagination, NewestVllFirst
from portal.api.rest.request_bodies import (
    BodyTooLarge,
    BoundedJSONParser,
    FactsField,
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
    validated,
)
from portal.api.rest.views import VisibleListView, VisibleRowView, located
from portal.core import clock
from portal.core.quantities import whole_number
from portal.imports.errors import sentence
from portal.imports.kinds import KINDS
from portal.imports.kinds.kind import Actor, Kind
from portal.imports.models import Import, ImportRow, ImportState
from portal.imports.operations import import_begin, import_cancel
from portal.imports.tables import error_rows, import_stage, imports, refused_rows
from portal.uploads.csv_reader import MAX_BYTES

Handler = Callable[..., HttpResponse]


def takes_bytes(most: int) -> Callable[[Handler], Handler]:
    """Return a decorator that allows bodies of up to ``most`` bytes for a view's write method.

    The code for Idempotency-Key reads the whole body, but Django refuses to read more than
    DATA_UPLOAD_MAX_MEMORY_SIZE. The wrapper therefore reads the body itself and stores it where Django would
    store it. DRF authenticates the sender before the wrapper runs.
    """

    def limited(handler: Handler) -> Handler:
        @wraps(handler)
        def write(view: APIView, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
            plain = request._request
            if whole_number(plain.META.get("CONTENT_LENGTH") or "0", most=most) is None:
                raise BodyTooLarge(f"The body may have at most {most} bytes.")
            if not hasattr(plain, "_body"):
                body = plain.read(most)
                plain._body, plain._stream = body, BytesIO(body)
            return handler(view, request, *args, **kwargs)

        return write

    return limited


class ImportWriteSerializer(StrictSerializer):
    """A table with rows of one kind. The page *Import* lists its columns."""

    kind = serializers.ChoiceField(choices=list(KINDS))
    dry_run = StrictBooleanField(
        required=False,
        default=False,
        help_text="True only checks the table; a request to `/begin` then imports it.",
    )
    file_name = StrictCharField(required=False, default="", allow_blank=True, max_length=100)
    csv = serializers.CharField(
        trim_whitespace=False,
        help_text="The table with its header, at most 8 MiB. Instead, you can send the file as the body with"
        " `Content-Type: text/csv`, and the other members in the query.",
    )


class RowRefusalSerializer(serializers.Serializer[Any]):
    """A reason against a row. ``column`` is "" if the reason concerns the whole row."""

    column = serializers.CharField()
    code = serializers.CharField()
    detail = serializers.SerializerMethodField()
    facts = FactsField()

    def get_detail(self, refusal: dict[str, Any]) -> str:
        return sentence(refusal)


class ImportSerializer(serializers.ModelSerializer[Import]):
    """An import. ``rows`` is the number of all rows; ``new``, ``same``, ``refused`` and ``made`` count the
    checked rows by result.
    """

    kind = serializers.ChoiceField(choices=list(KINDS))
    state = serializers.ChoiceField(choices=ImportState.values)
    begun_by = serializers.CharField(
        source="begun_by.username",
        default=None,
        allow_null=True,
        help_text="The user who began the import after the check. It then runs with this user's rights. Null:"
        " nobody yet.",
    )
    ended_by = serializers.CharField(
        source="ended_by.username",
        default=None,
        allow_null=True,
        help_text="The user who cancelled it; null if nobody did.",
    )
    rows = serializers.IntegerField(source="total")
    new = serializers.IntegerField(help_text="The number of rows that would be imported.")
    same = serializers.IntegerField(help_text="The number of rows that exist already with equal values.")
    refused = serializers.IntegerField(
        help_text="The number of rows that cannot be imported; `/errors` has the reasons."
    )
    made = serializers.IntegerField(help_text="The number of imported rows.")
    passed_over = serializers.IntegerField(
        source="remarks", help_text="The number of ignored rows: those that begin with `# `."
    )
    stopped_by = RowRefusalSerializer(
        allow_null=True, help_text="The reason if the portal cancelled the import; else null."
    )

    class Meta:
        model = Import
        fields: tuple[str, ...] = (
            "id",
            "kind",
            "state",
            "file_name",
            "asked_by",
            "created_at",
            "begun_at",
            "begun_by",
            "ended_at",
            "ended_by",
            "rows",
            "new",
            "same",
            "refused",
            "made",
            "passed_over",
            "stopped_by",
        )
        read_only_fields = fields
        extra_kwargs = {"asked_by": {"source": "requested_by"}}

    def get_fields(self) -> dict[str, Any]:
        by = serializers.CharField(source="requested_by.username", help_text="The user who sent the table.")
        return super().get_fields() | {"asked_by": by}


class RefusedRowSerializer(serializers.ModelSerializer[ImportRow]):
    """A row that cannot be imported. ``line`` is its line number in the file, from 1."""

    cells = serializers.DictField(child=serializers.CharField())
    surplus = serializers.ListField(
        child=serializers.CharField(), help_text="Cells beyond the last column of the header."
    )
    refusals = RowRefusalSerializer(many=True)

    class Meta:
        model = ImportRow
        fields = ("line", "cells", "surplus", "refusals")


# Bytes. A table in JSON is longer than the file, because each quotation mark or line break needs two bytes.
_LARGEST = MAX_BYTES + MAX_BYTES // 8
_FLAGS = {"true": True, "false": False}
_NOT_YOURS = _("Only NOC admins import users.")


class TableJSONParser(BoundedJSONParser):
    limit = _LARGEST


class TableParser(BaseParser):
    """Parses a body that is the file itself. The other members of the request are in the query."""

    media_type = "text/csv"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return _as_json((parser_context or {})["request"], stream.read())


class ImportsView(VisibleListView[Import]):
    """The imports, newest first. For NOC staff."""

    permission_classes = [IsNoc]
    parser_classes = [TableJSONParser, TableParser]
    serializer_class = ImportSerializer
    pagination_class = NewestVllFirst
    rows = imports

    @extend_schema(
        request={"application/json": ImportWriteSerializer, TableParser.media_type: {"type": "string"}},
        responses={202: ImportSerializer},
    )
    @takes_bytes(_LARGEST)
    @once_per_key
    def post(self, request: Request) -> Response:
        """Send a table. The portal checks the table and, unless you request a dry run, imports it. A refused
        row does not prevent the import of other rows. Only NOC admins can import users; a token also needs
        the scope team.
        """
        data: bytes | None = None
        document = request.data
        if request.content_type.partition(";")[0] == TableParser.media_type and not document:
            # The framework calls no parser for an empty body, so the query is read here.
            document = _as_json(request, b"")
        if isinstance(document, dict) and isinstance(document.get("csv"), bytes):
            data = document["csv"]
            document = document | {"csv": "…"}
        body = validated(ImportWriteSerializer, document)
        kind = KINDS[body["kind"]]
        this = import_stage(
            kind=kind,
            data=body["csv"].encode() if data is None else data,
            file_name=body["file_name"],
            actor=_actor(request, kind),
            now=clock.now(),
            at_once=not body["dry_run"],
        )
        return _accepted(request, this)


class ImportView(VisibleRowView[Import]):
    """An import and its progress."""

    permission_classes = [IsNoc]
    serializer_class = ImportSerializer
    rows = imports


class ImportBeginView(APIView):
    permission_classes = [IsNoc]

    @extend_schema(request=None, responses={202: ImportSerializer})
    @once_per_key
    def post(self, request: Request, pk: Any) -> Response:
        """Import the rows that a dry run found new."""
        this = get_object_or_404(imports(caller(request)), pk=pk)
        actor = _actor(request, KINDS[this.kind])
        return _accepted(request, import_begin(this=this, actor=actor, now=clock.now()))


class ImportCancelView(APIView):
    permission_classes = [IsNoc]

    @extend_schema(request=None, responses={200: ImportSerializer})
    @once_per_key
    def post(self, request: Request, pk: Any) -> Response:
        """Cancel an import. Rows that are already imported stay."""
        this = get_object_or_404(imports(caller(request)), pk=pk)
        actor = _actor(request, KINDS[this.kind])
        ended = import_cancel(this=this, user=actor.user, now=clock.now())
        return Response(ImportSerializer(ended).data)


class ImportErrorsView(VisibleListView[ImportRow]):
    """The rows that cannot be imported, with reasons, in the order of the file."""

    permission_classes = [IsNoc]
    serializer_class = RefusedRowSerializer
    pagination_class = KeysetPagination

    def visible_rows(self) -> QuerySet[ImportRow]:
        this = get_object_or_404(imports(caller(self.request)), pk=self.kwargs["pk"])
        # Check the permission again: the cells of refused rows may contain mail addresses of people.
        _actor(self.request, KINDS[this.kind])
        return refused_rows(this)


class ImportErrorsCsvView(APIView):
    permission_classes = [IsNoc]
    renderer_classes = [CsvRenderer, JSONRenderer]

    @extend_schema(responses={(200, "text/csv"): {"type": "string"}})
    def get(self, request: Request, pk: Any) -> StreamingHttpResponse:
        """The refused rows with reasons as CSV. After a correction, you can send this file again."""
        this = get_object_or_404(imports(caller(request)), pk=pk)
        _actor(request, KINDS[this.kind])
        return csv_response(f"{this.kind}-errors.csv", error_rows(this))


def _as_json(request: Request, table: bytes) -> dict[str, Any]:
    """Return the members that a JSON body would have: the members in the query, and the table."""
    document: dict[str, Any] = request.query_params.dict()
    if "dry_run" in document:
        document["dry_run"] = _FLAGS.get(document["dry_run"], document["dry_run"])
    return document | {"csv": table}


def _actor(request: Request, kind: Kind) -> Actor:
    """Return the caller as an actor with its API token. Raises PermissionDenied if the caller may not import
    this kind.
    """
    actor = Actor(user=caller(request), token=token_of(request))
    if not kind.may_import(actor):
        if kind.may_import(Actor(user=actor.user)):
            raise PermissionDenied(needs_scope(Scope.TEAM))
        raise PermissionDenied(_NOT_YOURS)
    return actor


def _accepted(request: Request, this: Import) -> Response:
    return located(ImportSerializer(this).data, "import", this.pk, request=request, code=202)
