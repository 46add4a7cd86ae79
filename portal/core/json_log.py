"""The log format: one JSON object per line with ``time``, ``level`` and ``msg``, as in the agents' log.

Values in ``extra`` become further members. Records of a request also have ``request_id``. URLs with secrets
are masked in all records, including the records of libraries.
"""

from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from portal.core.request_id import current_request_id
from portal.core.url_redaction import masked


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
