"""One JSON object for each line of the log, with the members that the agents' log has: time, level, msg.

What is given as ``extra`` stands beside them, and ``request_id`` where the line was written for a request.
"""

from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from portal.core.request_id import current_request_id


def formatter() -> structlog.stdlib.ProcessorFormatter:
    """For ``logging.config``: every line of every library goes through it."""
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(), _facts],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info,
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
