"""Answers in CSV, streamed; problems are JSON all the same."""

from collections.abc import Iterable

from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer

from portal.api.v1.streaming_limit import alone
from portal.core.csv_text import csv_lines


class CsvRenderer(JSONRenderer):
    """Lets callers ask for text/csv."""

    media_type = "text/csv"
    format = "csv"


def csv_answer(
    name: str, rows: Iterable[Iterable[object]], *, unbounded: bool = False
) -> StreamingHttpResponse:
    """A file of that name, with a line for each row as soon as it is there.

    Where the rows may be any number, one such answer is given at a time. Raises AnotherIsRunning.
    """
    lines = csv_lines(rows)
    return StreamingHttpResponse(
        alone(lines) if unbounded else lines,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
