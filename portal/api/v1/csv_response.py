"""Streamed responses in CSV. Their problem documents are JSON."""

from collections.abc import Collection, Iterable

from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer

from portal.api.v1.streaming_limit import limited
from portal.core.csv_text import csv_lines


class CsvRenderer(JSONRenderer):
    """Accepts requests for text/csv. It renders only problem documents, as JSON."""

    media_type = "text/csv"
    format = "csv"


def csv_response(
    name: str, rows: Iterable[Iterable[object]], *, unbounded_for: Collection[str] = ()
) -> StreamingHttpResponse:
    """Return a CSV file with this name. Each row is sent as soon as it is read.

    ``unbounded_for``: the owners (``owners_of``) of a response with any number of rows. Only a few such
    responses are sent at a time. Raises AnotherIsRunning.
    """
    lines = csv_lines(rows)
    return StreamingHttpResponse(
        limited(lines, owners=unbounded_for) if unbounded_for else lines,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
