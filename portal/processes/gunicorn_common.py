"""What several servers of gunicorn have in common: the log format, and the limit of open files."""

import logging.config
import resource
from typing import Any

from gunicorn.glogging import Logger

from portal.settings import LOGGING


def open_files_raise(server: Any) -> None:
    """gunicorn's hook ``on_starting``: raise the limit of open files to the maximum."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65_536), most))


class GunicornLog(Logger):
    """gunicorn's messages in the portal's log format. portal.core.http.request_log logs requests."""

    def setup(self, cfg: Any) -> None:
        logging.config.dictConfig(LOGGING)
        self.cfg = cfg
        self.error_log.propagate = True

    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        """Log nothing. The portal logs requests itself: it knows the request id, and which
        addresses are secret.
        """
