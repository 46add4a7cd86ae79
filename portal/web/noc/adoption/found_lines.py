"""Lines that the agents found on routers: the list, the adoption of lines, and the release of a line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django import template
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts import permissions
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.plain_text import csv_lines
from portal.core.quantities import row_id
from portal.inventory.found_lines import (
    FOUND_LINE_FILTERS,
    FoundLine,
    Standing,
    circuits_named,
    found_circuits,
    found_lines,
)
from portal.netbox_sync.l2vpn_proposals import L2vpnProposals, Proposal
from portal.uploads.csv_reader import MAX_BYTES
from portal.uploads.errors import TableTooLarge
from portal.vll.models import Vll
from portal.vll.operations.adopt_line import (
    MOST_ADOPTIONS,
    Adoption,
    AdoptionOutcome,
    FoundPorts,
    line_adopt,
    lines_adopt,
)
from portal.vll.operations.line_removal import line_let_go
from portal.web.noc.adoption.adoption_forms import (
    AdoptionFile,
    AdoptionForm,
    AdoptionRowForm,
    AdoptionsForm,
    csv_rows,
    of_csv,
    of_vppcfg,
    proposed_mtu,
    proposed_name,
)
from portal.web.page.badges import badge_markup
from portal.web.page.base import SignedInRequest, requires, visible_vll
from portal.web.page.list_filters import ListFilters, filtered, in_order

_LONGEST_NAME = 100


def found_line_filters(query: QueryDict) -> ListFilters:
    """Return the filters of a request.

    ``?q=`` (search) and ``?standing=`` (status) come from the form. ``?router=`` selects the lines with an
    end on the router with that name; the form shows this filter only then.
    """
    router = query.get("router", "").replace("\0", "")[:_LONGEST_NAME]
    filters = [
        replace(each, label=_("Router"), options=lambda: [(router, router)])
        if router and each.name == "router"
        else each
        for each in FOUND_LINE_FILTERS
    ]
    return filtered(found_circuits(), query, filters, search=circuits_named)


register = template.Library()

_TONES = {
    Standing.ONE_SIDED: "danger",
    Standing.ONE_DIRECTIONAL: "danger",
    Standing.MISMATCHED: "warning",
    Standing.COMPLETE: "success",
}


@register.simple_tag
def standing(line: FoundLine) -> SafeString:
    """Return the badge of a found line's standing, such as "Complete"."""
    return badge_markup(line.standing.label, _TONES[line.standing])


@requires(permissions.may_run_the_network)
@require_safe
def listing(request: SignedInRequest) -> HttpResponse:
    """Show the found lines that match the filters (``found_line_filters``).

    ``?after=`` is the cursor for further pages.
    """
    found = found_line_filters(request.GET)
    page = in_order(found.rows, by=("pk",), after=request.GET.get("after", ""))
    lines = list(found_lines(page.rows))
    netbox = L2vpnProposals(lines)
    context = {
        "filtered": found,
        "page": page,
        "lines": [(line, netbox.of(line)) for line in lines],
        "keep": found.keep,
    }
    return render(request, "noc/adoption/found_lines.html", context)


_UNPROCESSABLE = 422
_CONFLICT = 409


@requires(permissions.may_remove_from_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def adopt(request: SignedInRequest, circuit_id: int) -> HttpResponse:
    """Show the form to adopt a found line (GET), or order the adoption (POST).

    If the adoption is refused, the response has status 422 and shows the form with its errors.
    """
    line = next(found_lines(found_circuits().filter(pk=circuit_id)), None)
    if line is None:
        raise Http404
    sent = request.POST if request.method == "POST" else None
    netbox = L2vpnProposals([line]).of(line)
    customer = FoundPorts([line]).customer(line) or (netbox.customer if netbox else "")
    form = AdoptionForm(sent, line=line, customer=customer, user=request.user, netbox=netbox)
    refusal = ""
    if form.is_valid():
        values = {name: form.cleaned_data[name] for name in ("customer", "description", "svc_mtu", "cir_bps")}
        adoption = Adoption(found_line=circuit_id, **values)
        try:
            order = line_adopt(user=request.user, adoption=adoption, now=clock.now())
        except DomainError as error:
            refusal = error.sentence
        else:
            messages.success(request, gettext("The line is being taken over."))
            return redirect("web:vll", vll_id=order.vll_id)
    status = _UNPROCESSABLE if form.is_bound else 200
    context = {"line": line, "form": form, "refusal": refusal, "netbox": netbox}
    return render(request, "noc/adoption/adopt.html", context, status=status)


@requires(permissions.may_let_go, of=visible_vll)
@require_http_methods(["GET", "HEAD", "POST"])
def let_go(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Ask for confirmation (GET), or order the release of a line (POST).

    If the release is refused, the response has status 409 and shows the reason.
    """
    refusal = ""
    if request.method == "POST":
        try:
            line_let_go(user=request.user, vll=vll, now=clock.now())
        except DomainError as error:
            refusal = error.sentence
        else:
            messages.success(request, gettext("The line is being let go of."))
            return redirect("web:vll", vll_id=vll.pk)
    context = {"vll": vll, "refusal": refusal}
    return render(request, "vll/let_go.html", context, status=_CONFLICT if refusal else None)


@dataclass(slots=True)
class Row:
    """The row of a found line in the form.

    ``netbox``: the proposal from NetBox. ``outcome``: the result of the check; None before a check.
    """

    line: FoundLine
    form: AdoptionRowForm
    netbox: Proposal | None = None
    outcome: AdoptionOutcome | None = None


@requires(permissions.may_remove_from_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def adopt_several(request: SignedInRequest) -> HttpResponse:
    """Show the form with the found lines that match the filters (GET), or handle the form (POST).

    The form has at most MOST_ADOPTIONS lines. The field ``step`` names the action of a POST:

    * ``file``: show the lines of an uploaded file;
    * ``check``: show the outcome for each submitted line;
    * ``adopt``: order all adoptions. If one adoption is refused, no adoption is ordered, and the status is
      422.
    """
    if request.method != "POST":
        return _page(request, AdoptionsForm(), _proposed(_adoptable(request)[:MOST_ADOPTIONS]))
    step = request.POST.get("step")
    for_all = AdoptionsForm(request.POST)
    if step == "file":
        uploaded = _uploaded(request)
        rows = _filled(uploaded.lines)
        problems = uploaded.problems
    else:
        rows, problems = _sent(request)
    outcomes = _check(request, for_all, rows, adopting=step == "adopt")
    if step == "adopt" and outcomes and all(each.order for each in outcomes):
        text = ngettext("{n} line is being taken over.", "{n} lines are being taken over.", len(outcomes))
        messages.success(request, text.format(n=len(outcomes)))
        return redirect("web:noc-orders")
    return _page(request, for_all, rows, problems, status=_UNPROCESSABLE if step == "adopt" else 200)


@requires(permissions.may_remove_from_the_network)
@require_safe
def sheet(request: SignedInRequest) -> StreamingHttpResponse:
    """Return the lines that match the filters as a CSV file to fill in, with proposed values."""
    rows = csv_rows(_adoptable(request))
    answer = StreamingHttpResponse(csv_lines(rows), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="found-lines.csv"'
    return answer


def _adoptable(request: SignedInRequest) -> list[FoundLine]:
    """Return the found lines that match the filters and can be adopted."""
    return [line for line in found_lines(found_line_filters(request.GET).rows) if line.may_be_adopted]


def _proposed(lines: Sequence[FoundLine]) -> list[Row]:
    ports, netbox = FoundPorts(lines), L2vpnProposals(lines)
    return [
        Row(
            line,
            netbox=(proposal := netbox.of(line)),
            form=AdoptionRowForm(
                None,
                line=line,
                initial={
                    "customer": ports.customer(line) or (proposal.customer if proposal else ""),
                    "description": proposed_name(line, proposal) or _name(line),
                    "svc_mtu": proposed_mtu(line),
                },
            ),
        )
        for line in lines
    ]


def _filled(lines: Iterable[tuple[FoundLine, Mapping[str, str]]]) -> list[Row]:
    """Return the rows of the form with the values of a file.

    If the file has no value for a field, the row has the proposed value. Only rows with a bandwidth in the
    file are validated.
    """
    lines = list(lines)
    rows = _proposed([line for line, _fields in lines])
    for row, (line, fields) in zip(rows, lines, strict=True):
        data = dict(row.form.initial) | {name: text for name, text in fields.items() if text}
        whole = {f"{line.id}-{name}": text for name, text in data.items()} | {f"{line.id}-take": "on"}
        row.form = AdoptionRowForm(whole if fields.get("cir_bps") else None, line=line, initial=data)
    return rows


def _sent(request: SignedInRequest) -> tuple[list[Row], list[str]]:
    ids = {number for text in request.POST.getlist("line") if (number := row_id(text)) is not None}
    lines = list(found_lines(found_circuits().filter(pk__in=sorted(ids)[:MOST_ADOPTIONS])))
    gone, problems = len(ids) - len(lines), []
    if gone:
        text = ngettext(
            "{n} line has changed: its routers report other values, or it was taken over.",
            "{n} lines have changed: their routers report other values, or they were taken over.",
            gone,
        )
        problems.append(text.format(n=gone))
    netbox = L2vpnProposals(lines)
    rows = [Row(line, AdoptionRowForm(request.POST, line=line), netbox.of(line)) for line in lines]
    return rows, problems


def _check(
    request: SignedInRequest, for_all: AdoptionsForm, rows: Iterable[Row], *, adopting: bool
) -> list[AdoptionOutcome]:
    """Return the outcome for each selected line. If a form has an error, order nothing and return an empty
    list.

    ``adopting``: whether to order the adoptions.
    """
    wanted = {row.line.id: adoption for row in rows if (adoption := row.form.adoption(for_all))}
    wrong = not for_all.is_valid() or any(row.form.errors for row in rows)
    outcomes = lines_adopt(
        user=request.user, wanted=list(wanted.values()), now=clock.now(), dry_run=wrong or not adopting
    )
    by_line = {each.found_line: each for each in outcomes}
    for row in rows:
        row.outcome = by_line.get(row.line.id)
    return [] if wrong else outcomes


def _uploaded(request: SignedInRequest) -> AdoptionFile:
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile):
        return AdoptionFile(problems=[gettext("Choose a file first.")])
    router = request.POST.get("router", "").replace("\0", "").strip()[:_LONGEST_NAME]
    try:
        if (file.size or 0) > MAX_BYTES:
            raise TableTooLarge(max_bytes=MAX_BYTES)
        if str(file.name).endswith((".yaml", ".yml")):
            return of_vppcfg(file.read(), router=router)
        return of_csv(file.read())
    except DomainError as error:
        return AdoptionFile(problems=[error.sentence])


def _page(
    request: SignedInRequest,
    for_all: AdoptionsForm,
    rows: Sequence[Row],
    problems: Sequence[str] = (),
    *,
    status: int = 200,
) -> HttpResponse:
    checked = [row.outcome for row in rows if row.outcome]
    context: dict[str, Any] = {
        "for_all": for_all,
        "rows": rows,
        "problems": problems,
        "is_file_open": bool(problems) and not rows,
        "refused": sum(1 for each in checked if each.refusal),
        "accepted": sum(1 for each in checked if each.order),
        "most": MOST_ADOPTIONS,
        "query": request.GET.urlencode(),
    }
    return render(request, "noc/adoption/adopt_several.html", context, status=status)


def _name(line: FoundLine) -> str:
    """Return a name made of the line's sites and its key.

    If the line has no key, its VLAN is used instead.
    """
    places = " – ".join(dict.fromkeys(str(end.router.site) for end in line.ends))
    number = line.key if line.key is not None else next((each.outer_vlan for each in line.ends), None)
    return places if number is None else f"{places} {number}"
