"""Answers in CSV, streamed; problems are JSON all the same."""

from collections.abc import Collection, Iterable

from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer

from portal.api.v1.streaming_limit import limited
from portal.core.csv_text import csv_lines


class CsvRenderer(JSONRenderer):
    """Lets callers ask for text/csv."""

    media_type = "text/csv"
    format = "csv"


def csv_answer(
    name: str, rows: Iterable[Iterable[object]], *, unbounded_for: Collection[str] = ()
) -> StreamingHttpResponse:
    """A file of that name, with a line for each row as soon as it is there.

    ``unbounded_for``: whose answer it is (``owners_of``), where the rows may be any number. Few such answers
    are given at a time. Raises AnotherIsRunning.
    """
    lines = csv_lines(rows)
    return StreamingHttpResponse(
        limited(lines, owners=unbounded_for) if unbounded_for else lines,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
