"""One JSON object for each line of the log, with the members that the agents' log has: time, level, msg.

What is given as ``extra`` stands beside them, and ``request_id`` where the line was written for a request.
Whoever writes a line, no secret address gets into it.
"""

from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from portal.core.request_id import current_request_id
from portal.core.url_redaction import masked


def formatter() -> structlog.stdlib.ProcessorFormatter:
    """For ``logging.config``: every line of every library goes through it."""
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
    # Django puts the request itself there, whose text is its whole address.
    event.pop("request", None)
    return {name: masked(value) for name, value in event.items()}
