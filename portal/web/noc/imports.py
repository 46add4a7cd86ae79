"""Imports of tables: upload, preview, confirmation, progress."""

from typing import Any
from uuid import UUID

from django import template
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.accounts import permissions
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.plain_text import csv_lines
from portal.imports.errors import sentence
from portal.imports.kinds import KINDS
from portal.imports.kinds.kind import Actor, Kind
from portal.imports.models import Import, ImportState
from portal.imports.operations import import_begin, import_cancel
from portal.imports.tables import (
    MAX_ROWS,
    error_rows,
    import_stage,
    imports,
    kinds_for,
    refused_rows,
    template_rows,
)
from portal.uploads.csv_reader import MAX_BYTES
from portal.uploads.errors import TableTooLarge
from portal.web.page.badges import badge_markup
from portal.web.page.base import SignedInRequest, requires, result_message

register = template.Library()

_STATES: dict[str, tuple[Any, str]] = {
    ImportState.CHECKING: (_("Being checked"), "info"),
    ImportState.CHECKED: (_("Checked only"), "warning"),
    ImportState.IMPORTING: (_("Being imported"), "info"),
    ImportState.COMPLETED: (_("Imported"), "success"),
    ImportState.CANCELLED: (_("Cancelled"), "muted"),
}


@register.filter
def import_state(this: Import) -> SafeString:
    return badge_markup(*_STATES.get(this.state, (this.state, "muted")))


register.filter("refusal_sentence", sentence)


IMPORTS_SHOWN = 20
ROWS_SHOWN = 100
_UNPROCESSABLE = 422
# The byte order mark, by which spreadsheet programs recognise UTF-8.
_MARK = "\ufeff"


@requires(permissions.may_run_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def listing(request: SignedInRequest) -> HttpResponse:
    """Show the columns of a kind and the last imports (GET), or check an uploaded file (POST).

    If the file is refused, the response has status 422 and shows the reason.
    """
    kind = _kind(request, request.GET.get("kind") or next(iter(KINDS)))
    if request.method != "POST":
        return _listing(request, kind)
    try:
        this = _stage(request, kind)
    except DomainError as error:
        return _listing(request, kind, error.sentence)
    if this is None:
        return _listing(request, kind, gettext("Choose a file first."))
    return redirect("web:noc-import", import_id=this.pk)


@requires(permissions.may_run_the_network)
@require_safe
def csv_template(request: SignedInRequest, kind: str) -> StreamingHttpResponse:
    """Return a CSV file with the header and an example row of a kind."""
    return _csv(f"{kind}.csv", template_rows(_kind(request, kind)))


@requires(permissions.may_run_the_network)
@require_safe
def page(request: SignedInRequest, import_id: UUID) -> HttpResponse:
    """Show an import."""
    this = get_object_or_404(imports(request.user), pk=import_id)
    # The refused rows need no separate check: they change only together with the counts in the live part.
    live = render_to_string("noc/imports/_import_live.html", {"this": this}, request)
    kind = KINDS[this.kind]
    may_import = kind.may_import(Actor(user=request.user))
    # Cells and messages contain text from the file, which may include personal data.
    rows = refused_rows(this)[:ROWS_SHOWN] if may_import else []
    context = {
        "this": this,
        "kind": kind,
        "rows": rows,
        "refusals": [(row.line, refusal) for row in rows for refusal in row.refusals],
        "live": live,
        "every": "2s" if this.is_running else "",
        "may_import": may_import,
    }
    return render(request, "noc/imports/_import.html" if request.htmx else "noc/imports/import.html", context)


@requires(permissions.may_run_the_network)
@require_safe
def errors(request: SignedInRequest, import_id: UUID) -> StreamingHttpResponse:
    """Return a CSV file with the refused rows and their errors. The user can correct and import the file."""
    this = _importable(request, import_id)
    return _csv(f"{this.kind}-errors.csv", error_rows(this))


@requires(permissions.may_run_the_network)
@require_POST
def begin(request: SignedInRequest, import_id: UUID) -> HttpResponse:
    """Import the new rows of a checked file."""
    this = _importable(request, import_id)
    with result_message(request):
        import_begin(this=this, actor=Actor(user=request.user), now=clock.now())
    return redirect("web:noc-import", import_id=import_id)


@requires(permissions.may_run_the_network)
@require_POST
def cancel(request: SignedInRequest, import_id: UUID) -> HttpResponse:
    """Stop an import. Rows that are already imported remain."""
    this = _importable(request, import_id)
    with result_message(request):
        import_cancel(this=this, user=request.user, now=clock.now())
    return redirect("web:noc-import", import_id=import_id)


def _kind(request: SignedInRequest, slug: str) -> Kind:
    """Return the kind with this slug.

    Raises Http404, or PermissionDenied if the user may not import this kind.
    """
    if slug not in KINDS:
        raise Http404
    if not KINDS[slug].may_import(Actor(user=request.user)):
        raise PermissionDenied
    return KINDS[slug]


def _importable(request: SignedInRequest, import_id: UUID) -> Import:
    """Return the import. Raises Http404, or PermissionDenied if the user may not import its kind."""
    this = get_object_or_404(imports(request.user), pk=import_id)
    _kind(request, this.kind)
    return this


def _stage(request: SignedInRequest, kind: Kind) -> Import | None:
    """Store the uploaded file as an import to check, and return it; None if no file was uploaded."""
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile):
        return None
    if (file.size or 0) > MAX_BYTES:
        raise TableTooLarge(max_bytes=MAX_BYTES)
    return import_stage(
        kind=kind,
        data=file.read(),
        file_name=str(file.name or ""),
        actor=Actor(user=request.user),
        now=clock.now(),
    )


def _listing(request: SignedInRequest, kind: Kind, refusal: str = "") -> HttpResponse:
    context: dict[str, Any] = {
        "kind": kind,
        "kinds": kinds_for(request.user),
        "refusal": refusal,
        "imports": [(each, KINDS[each.kind]) for each in imports(request.user)[:IMPORTS_SHOWN]],
        "max_rows": MAX_ROWS,
        "max_mib": MAX_BYTES // 2**20,
    }
    return render(request, "noc/imports/imports.html", context, status=_UNPROCESSABLE if refusal else 200)


def _csv(name: str, rows: Any) -> StreamingHttpResponse:
    def lines() -> Any:
        yield _MARK
        yield from csv_lines(rows)

    answer = StreamingHttpResponse(lines(), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
