"""Every view declares who may use it."""

from collections.abc import Callable, Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from portal.core.http import declared


def views(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    for entry in resolver.url_patterns:
        address = f"{prefix}{entry.pattern}"
        if isinstance(entry, URLResolver):
            yield from views(entry, address)
        elif isinstance(entry, URLPattern):
            yield address, entry.callback


def declares(view: Callable[..., Any]) -> bool:
    """Return whether a page has ``@requires`` or ``@public``, or a JSON view its own permission classes."""
    json_view = getattr(view, "cls", None)
    return declared(view) is not None or (json_view is not None and "permission_classes" in vars(json_view))


def test_every_view_declares_its_permission() -> None:
    found = dict(views(get_resolver()))
    assert "login/" in found
    assert "vlls/<uuid:vll_id>/remove/" in found
    assert [address for address, view in found.items() if not declares(view)] == []
