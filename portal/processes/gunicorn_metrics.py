"""gunicorn's settings for the metrics process, which Prometheus scrapes.

    gunicorn --config python:portal.processes.gunicorn_metrics --bind 127.0.0.1:9471

The process has no authentication. Bind it to loopback or to an address of the management network.
"""

from portal.processes.gunicorn_logging import GunicornLog
from portal.processes.gunicorn_web import TimeoutWorker

wsgi_app = "portal.processes.wsgi_metrics"
worker_class = TimeoutWorker
logger_class = GunicornLog
threads = 2
