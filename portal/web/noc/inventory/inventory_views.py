"""The NOC's inventory pages: list, form and removal. They are the same for every kind of object.

Forms have suggestions: names that match the typed text, and the interfaces of a router.
"""

from functools import partial
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from portal.accounts import permissions
from portal.core import clock
from portal.core.errors import DomainError
from portal.web.fields.base import CONFLICT, UNPROCESSABLE, VersionedForm, save
from portal.web.fields.suggestions import (
    ROWS,
    PicksInterfaces,
    options,
    reported_list,
    router_named,
    suggestions,
)
from portal.web.noc.inventory.inventory_kinds import Kind
from portal.web.page.base import SignedInRequest, proves_identity, requires
from portal.web.page.list_filters import filtered, in_order


@requires(permissions.may_run_the_network)
def suggest(request: SignedInRequest, of: str) -> HttpResponse:
    """Return the options of a datalist. ``?of=`` is the name of the parameter with the typed text."""
    if of not in ROWS:
        raise Http404
    text = request.GET.get(request.GET.get("of", ""), "").replace("\0", "").strip()[:100]
    return HttpResponse(options(suggestions(of, text)))


@requires(permissions.may_run_the_network)
def interfaces(request: SignedInRequest) -> HttpResponse:
    """Return the list of the interfaces that a router reports, for the field ``?field=``.

    ``?of=`` is the name of the parameter with the router.
    """
    field, of = (request.GET.get(name, "") for name in ("field", "of"))
    if not (field.isidentifier() and of.isidentifier()):
        raise Http404
    return HttpResponse(reported_list(field, of, router_named(request.GET.get(of))))


@requires(permissions.may_run_the_network)
def listing(request: SignedInRequest, kind: Kind) -> HttpResponse:
    """Show a page of the rows of a kind that match the search and the filters."""
    matching = filtered(kind.rows(), request.GET, kind.filters) if kind.searchable else None
    found = in_order(
        matching.rows if matching else kind.rows(), by=kind.by, after=request.GET.get("after", "")
    )
    rows = [
        {"row": row, "cells": [(heading, value(row)) for heading, value in kind.columns]}
        for row in found.rows
    ]
    return _page(
        request,
        "noc/inventory/list.html",
        kind,
        {"rows": rows, "page": found, "filtered": matching},
    )


@requires(permissions.may_run_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: SignedInRequest, kind: Kind) -> HttpResponse:
    """Show the form to create a row, with initial values from the query (GET), or create the row (POST).

    If the form is refused, the response has status 422 and shows the errors.
    """
    if half := _half_written(request, kind.create_form):
        return _form(request, kind, half, None)
    form = kind.create_form(request.POST or None, initial=request.GET.dict())
    form.submit(transaction.atomic(partial(kind.writes.create, user=request.user, now=clock.now())))
    if form.is_bound and not form.errors:
        messages.success(request, _("Added."))
        for doubt in kind.doubts(form.cleaned_data):
            messages.warning(request, doubt)
        return redirect(kind.leads_to(form.cleaned_data, request.GET) or f"web:noc-{kind.slug}")
    return _form(request, kind, form, None)


@requires(permissions.may_run_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: SignedInRequest, kind: Kind, **ids: int) -> HttpResponse:
    """Show the form to change a row (GET), or change the row (POST).

    If the form is refused, the response has status 422 and shows the errors. The form contains the version of
    the row when it was opened. If somebody has changed the row since, the status is 409. The form then shows
    both values, and the user can save again.
    """
    if request.method != "POST":
        row = _row(kind, ids)
        form = kind.change_form.of(row)
        return _form(request, kind, form, row, version=form.version)
    if half := _half_written(request, kind.change_form):
        return _form(request, kind, half, _row(kind, ids), version=request.POST.get("version", ""))
    saved = save(
        rows=kind.rows(),
        pk=_pk(kind, ids),
        form=kind.change_form,
        sent=request.POST,
        operation=partial(kind.writes.change, user=request.user, now=clock.now()),
        keyword=kind.keyword,
    )
    if saved.refused is None:
        messages.success(request, _("Saved."))
        return redirect(f"web:noc-{kind.slug}")
    return _form(request, kind, saved.form, saved.row, version=saved.version, status=saved.refused)


@requires(permissions.may_remove_from_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: SignedInRequest, kind: Kind, **ids: int) -> HttpResponse:
    """Ask for confirmation (GET), or remove the row (POST).

    If other objects use the row, the response has status 409 and names them.
    """
    view = proves_identity(_remove) if kind.removal_ends_access else _remove
    return view(request, kind, ids)


def _remove(request: SignedInRequest, kind: Kind, ids: dict[str, int]) -> HttpResponse:
    row = _row(kind, ids)
    refusal = ""
    if request.method == "POST":
        try:
            kind.writes.remove(**{kind.keyword: row}, user=request.user, now=clock.now())
        except DomainError as error:
            refusal = error.sentence
        else:
            messages.success(request, _("Removed."))
            return redirect(f"web:noc-{kind.slug}")
    # allauth repeats the request after the password. The response then comes from another address.
    address = reverse(f"web:noc-{kind.slug}-remove", args=[row.pk])
    context = {"row": row, "refusal": refusal, "action_url": address}
    return _page(request, "noc/inventory/remove.html", kind, context, status=CONFLICT if refusal else None)


def _half_written(request: SignedInRequest, form: type[VersionedForm]) -> VersionedForm | None:
    """Return the form with the values entered so far, if the user pressed a button for an interface.

    Return None if the user pressed another button.
    """
    if request.method != "POST" or not issubclass(form, PicksInterfaces):
        return None
    return form.half_written(request.POST)


def _pk(kind: Kind, ids: dict[str, int]) -> int:
    """Return the id of the row in the address. Its parameter is ``<keyword>_id``."""
    return ids[f"{kind.keyword}_id"]


def _row(kind: Kind, ids: dict[str, int]) -> Any:
    return get_object_or_404(kind.rows(), pk=_pk(kind, ids))


def _form(
    request: SignedInRequest,
    kind: Kind,
    form: VersionedForm,
    row: Any,
    *,
    version: str = "",
    status: int | None = None,
) -> HttpResponse:
    if form.is_bound and status is None:
        status = UNPROCESSABLE
    facts = kind.facts(row) if row is not None else []
    context = {"form": form, "row": row, "version": version, "facts": facts}
    if kind.losses is not None and row is not None:
        context["losses"] = kind.losses(row, clock.now())
    return _page(request, "noc/inventory/form.html", kind, context, status=status)


def _page(
    request: SignedInRequest, template: str, kind: Kind, context: dict[str, Any], status: int | None = None
) -> HttpResponse:
    more = {"kind": kind, "list_url": f"web:noc-{kind.slug}", **context}
    for page in ("add", "change", "history", "remove"):
        more[f"{page}_url"] = f"web:noc-{kind.slug}-{page}"
    return render(request, template, more, status=status)
