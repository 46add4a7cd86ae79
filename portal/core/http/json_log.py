"""The log format: one JSON object per line with ``time``, ``level`` and ``msg``, as in the agents' log.

Values in ``extra`` become further members. Records of a request also have ``request_id``. URLs with secrets
are masked in all records, including the records of libraries, because anybody who reads such a URL could use
it.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import structlog
from django.conf import settings
from structlog.typing import EventDict, WrappedLogger

from portal.core.http.request_id import current_request_id


def masked(value: Any) -> Any:
    """Return ``value`` with secrets in URLs replaced by "…".

    Secrets are the rest of a path after one of ``SECRET_ADDRESSES``, and the query of any URL. Mappings and
    sequences are searched recursively. Values of other types than JSON's are converted to text.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {name: masked(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [masked(each) for each in value]
    return _secrets().sub(r"\g<shown>…", value if isinstance(value, str) else repr(value))


@cache
def _secrets() -> re.Pattern[str]:
    below = "|".join(map(re.escape, settings.SECRET_ADDRESSES))
    query = r"""/[^\s"'<>?]*\?"""
    return re.compile(rf"""(?P<shown>{below}|{query})[^\s"'<>]+""")


def formatter() -> structlog.stdlib.ProcessorFormatter:
    """Return the formatter for ``logging.config``. It also formats the records of libraries."""
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(), _facts],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info,
            _without_secrets,
            structlog.processors.EventRenamer("msg"),
            structlog.processors.JSONRenderer(),
        ],
    )


def _facts(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    record: Any = event["_record"]
    event["level"], event["logger"] = record.levelname, record.name
    if request_id := current_request_id.get():
        event.setdefault("request_id", request_id)
    return event


def _without_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    # Django adds the request to its records. The text of a request contains the whole URL.
    event.pop("request", None)
    return {name: masked(value) for name, value in event.items()}
