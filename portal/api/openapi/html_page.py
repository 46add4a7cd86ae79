"""HTML pages with the schema and the errors. The portal renders the pages, and they load nothing from other
hosts.

The pages contain no secrets and are public: people may read them before they have an account.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from django.utils.translation import get_language, gettext

from portal.api.error_catalogue import entries
from portal.api.openapi.document import RULES
from portal.api.openapi.groups import FOR_EVERYBODY, FOR_THE_NOC, GROUPS, Group
from portal.api.openapi.request_examples import LANGUAGES, ExampleRequest, examples
from portal.api.openapi.shown_operations import OperationName, names, operations, problems_of_all
from portal.core.http.absolute_urls import absolute_url
from portal.core.http.view_permission import public

_VERBATIM = re.compile(r"(<pre\b.*?</pre>|<textarea\b.*?</textarea>)", re.DOTALL)
_INDENTED = re.compile(r"\s*\n\s*")


@dataclass(frozen=True, slots=True)
class _Rendered:
    """The HTML of an operation, and the HTML of the form with which a reader can send requests."""

    name: OperationName
    html: str
    trial: str


@public
def index(request: HttpRequest) -> HttpResponse:
    """Show ``GET /api/docs/``: the rules for all requests, and a list of operations.

    If the query parameter ``q`` is given, the list contains only the operations that match it.
    """
    query = request.GET.get("q", "").strip()[:100]
    sections = [(gettext("For everybody"), FOR_EVERYBODY), (gettext("For NOC staff"), FOR_THE_NOC)]
    found = [(title, _matching(groups, query)) for title, groups in sections]
    return render(
        request,
        "api/index.html",
        {
            "rules": RULES,
            "languages": LANGUAGES,
            "first_request": _first_request(),
            "problems": problems_of_all(),
            "searched": query,
            "sections": [(title, groups) for title, groups in found if groups],
        },
    )


@public
def group(request: HttpRequest, group: str) -> HttpResponse:
    """Show ``GET /api/docs/<group>/``: operations with parameters, bodies, responses, errors and examples."""
    found = GROUPS.get(group)
    if found is None:
        raise Http404
    shown, components = _rendered(found.slug, get_language() or "", absolute_url(""))
    return render(
        request,
        "api/group.html",
        {"group": found, "operations": shown, "components": components, "groups": GROUPS.values()},
    )


@public
def errors(request: HttpRequest) -> HttpResponse:
    """Show ``GET /api/docs/errors/``: an entry for every ``type`` of a problem document."""
    return render(request, "api/errors.html", {"entries": entries()})


def _matching(groups: tuple[Group, ...], query: str) -> list[tuple[Group, list[OperationName]]]:
    """Return the groups that have a matching operation, each with its matching operations.

    An operation matches if it contains all words of the query (see ``_searched``).
    """
    words = query.lower().split()
    found = []
    for each in groups:
        title = gettext(each.title)
        kept = [name for name in names()[each.slug] if all(word in _searched(name, title) for word in words)]
        if kept:
            found.append((each, kept))
    return found


def _searched(name: OperationName, title: str) -> str:
    return f"{name.method} {name.path} {name.id} {name.summary} {title}".lower()


def _first_request() -> dict[str, str]:
    return examples(
        ExampleRequest(
            method="GET",
            url=absolute_url("/api/v1/vlls"),
            body=None,
            if_match="",
            drawn_key=False,
            signed=True,
            response_type="application/json",
        )
    )


@cache
def _rendered(slug: str, language: str, base_url: str) -> tuple[list[_Rendered], str]:
    """Return a group's operations, and the objects that their responses contain, as HTML.

    The result is cached for each language and base address.
    """
    shown, components = operations(GROUPS[slug], base_url)
    parts = []
    for operation in shown:
        context: dict[str, Any] = {"operation": operation, "languages": LANGUAGES}
        html, trial = (_compact(f"api/{name}.html", context) for name in ("_operation", "_try"))
        parts.append(_Rendered(operation.name, html, trial))
    return parts, _compact("api/_components.html", {"components": components})


def _compact(template: str, context: dict[str, Any]) -> str:
    """Return a rendered template without its indentation, which would be a quarter of the page.

    Verbatim texts, such as examples, keep their indentation.
    """
    parts = _VERBATIM.split(render_to_string(template, context))
    return mark_safe(  # noqa: S308 - escaped by the template
        "".join(part if _VERBATIM.match(part) else _INDENTED.sub("\n", part) for part in parts)
    )
