"""gunicorn's messages in the portal's log format. portal.core.http.request_log logs requests."""

import logging.config
from typing import Any

from gunicorn.glogging import Logger

from portal.settings import LOGGING


class GunicornLog(Logger):
    def setup(self, cfg: Any) -> None:
        logging.config.dictConfig(LOGGING)
        self.cfg = cfg
        self.error_log.propagate = True

    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        """Log nothing. The portal logs requests itself: it knows the request id, and which
        addresses are secret.
        """
