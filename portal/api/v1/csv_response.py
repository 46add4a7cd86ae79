"""Streamed responses in CSV. If a request fails, the problem document is JSON."""

from collections.abc import Collection, Iterable

from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer

from portal.api.v1.streaming_limit import limited
from portal.core.csv_text import csv_lines


class CsvRenderer(JSONRenderer):
    """A renderer that lets clients request text/csv. It renders only problem documents, as JSON."""

    media_type = "text/csv"
    format = "csv"


def csv_response(
    name: str, rows: Iterable[Iterable[object]], *, unbounded_for: Collection[str] = ()
) -> StreamingHttpResponse:
    """Return a response with a CSV file of this name. Each row is sent as soon as it is read.

    If the number of rows has no limit, ``unbounded_for`` contains the owners of the response (see
    ``owners_of``). A process sends only a few such responses at a time. Raises AnotherIsRunning.
    """
    lines = csv_lines(rows)
    return StreamingHttpResponse(
        limited(lines, owners=unbounded_for) if unbounded_for else lines,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
