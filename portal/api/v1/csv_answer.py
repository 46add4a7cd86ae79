"""Answers in CSV, streamed; problems are JSON all the same."""

from collections.abc import Iterable

from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer

from portal.core.csv_text import csv_lines


class CsvRenderer(JSONRenderer):
    """Lets callers ask for text/csv."""

    media_type = "text/csv"
    format = "csv"


def csv_answer(name: str, rows: Iterable[Iterable[object]]) -> StreamingHttpResponse:
    """A file of that name, with a line for each row as soon as it is there."""
    return StreamingHttpResponse(
        csv_lines(rows),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
