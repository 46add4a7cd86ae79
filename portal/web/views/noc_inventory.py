"""The NOC's inventory: a list, a form and a removal, the same for every kind."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from portal.accounts import policies
from portal.core import clock
from portal.core.errors import DomainError
from portal.vll import words
from portal.web.access import SignedInRequest, requires
from portal.web.forms.versioned import VersionedForm
from portal.web.narrowing import narrowed
from portal.web.noc_kinds import KINDS, Kind
from portal.web.paging import in_order

UNPROCESSABLE, CONFLICT = 422, 409


@requires(policies.may_run_the_network)
def listing(request: SignedInRequest, kind: Kind) -> HttpResponse:
    """The rows of a kind, page by page, as the search and the filters say."""
    looked = narrowed(kind.rows(), request.GET, kind.choices) if kind.searchable else None
    found = in_order(looked.rows if looked else kind.rows(), by=kind.by, after=request.GET.get("after", ""))
    rows = [
        {"row": row, "cells": [(heading, value(row)) for heading, value in kind.columns]}
        for row in found.rows
    ]
    return _page(request, "noc/list.html", kind, {"rows": rows, "page": found, "narrowed": looked})


@requires(policies.may_run_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: SignedInRequest, kind: Kind) -> HttpResponse:
    """GET shows an empty form; POST makes the row, or answers 422 with what is wrong."""
    form = kind.create_form(request.POST or None)
    if request.method == "POST" and _do(form, kind.create, request):
        messages.success(request, _("It is added."))
        return redirect(f"web:noc-{kind.slug}")
    return _form(request, kind, form, None)


@requires(policies.may_run_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: SignedInRequest, kind: Kind, **ids: int) -> HttpResponse:
    """GET shows the row in a form; POST changes it, or answers 422 with what is wrong.

    The form says which version it was opened on. Where the row says something else by now the answer is 409,
    and the form shows both, to be saved on top of that.
    """
    if request.method != "POST":
        row = _row(kind.rows(), kind, ids)
        form = _untouched(kind, row)
        return _form(request, kind, form, row, version=form.version)
    seen = request.POST.get("version", "")
    # Locked: of two who have seen one version, one is refused.
    with transaction.atomic():
        row = _row(kind.rows().select_for_update(of=("self",)), kind, ids)
        now = _untouched(kind, row)
        form = kind.change_form(request.POST, initial=now.initial)
        outdated = form.is_outdated(seen=seen, now=now)
        done = not outdated and _do(form, kind.change, request, **{kind.keyword: row})
    if done:
        messages.success(request, _("It is changed."))
        return redirect(f"web:noc-{kind.slug}")
    if outdated:
        form.refuse_as_outdated(now)
        return _form(request, kind, form, row, version=now.version, status=CONFLICT)
    return _form(request, kind, form, row, version=seen)


@requires(policies.may_remove_from_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: SignedInRequest, kind: Kind, **ids: int) -> HttpResponse:
    """GET asks whether it is meant; POST removes the row, or says what uses it."""
    row = _row(kind.rows(), kind, ids)
    refusal = ""
    if request.method == "POST":
        try:
            kind.remove(**{kind.keyword: row}, user=request.user, now=clock.now())
        except DomainError as error:
            refusal = words.sentence(error)
        else:
            messages.success(request, _("It is removed."))
            return redirect(f"web:noc-{kind.slug}")
    context = {"row": row, "refusal": refusal}
    return _page(request, "noc/remove.html", kind, context, status=CONFLICT if refusal else None)


def _row(rows: QuerySet[Any], kind: Kind, ids: dict[str, int]) -> Any:
    """The one of ``rows`` that the address names as ``<keyword>_id``, or 404."""
    return get_object_or_404(rows, pk=ids[f"{kind.keyword}_id"])


def _untouched(kind: Kind, row: Any) -> VersionedForm:
    """The form with what the row says."""
    fields = kind.change_form().fields
    return kind.change_form(initial={name: getattr(row, name) for name in fields if hasattr(row, name)})


def _do(form: VersionedForm, operation: Any, request: SignedInRequest, **row: Any) -> bool:
    """Whether it is done; else the refusal is noted in the form."""
    if not form.is_valid():
        return False
    try:
        with transaction.atomic():
            operation(**row, **form.cleaned_data, user=request.user, now=clock.now())
    except DomainError as error:
        form.refuse(error)
        return False
    return True


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
    context = {"form": form, "row": row, "version": version}
    return _page(request, "noc/form.html", kind, context, status=status)


def _page(
    request: SignedInRequest, template: str, kind: Kind, context: dict[str, Any], status: int | None = None
) -> HttpResponse:
    more = {"kind": kind, "kinds": KINDS, "list_url": f"web:noc-{kind.slug}", **context}
    more["add_url"], more["change_url"] = f"web:noc-{kind.slug}-add", f"web:noc-{kind.slug}-change"
    more["history_url"] = f"web:noc-{kind.slug}-history"
    more["remove_url"] = f"web:noc-{kind.slug}-remove"
    return render(request, template, more, status=status)
