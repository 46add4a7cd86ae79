"""How gunicorn serves Prometheus: gunicorn --config python:portal.gunicorn_metrics --bind 127.0.0.1:9471

Nobody is asked who he is: bind it to loopback or to an address of the management network.
"""

from portal.gunicorn_log import GunicornLog
from portal.gunicorn_web import ImpatientWorker

wsgi_app = "portal.wsgi_metrics"
worker_class = ImpatientWorker
logger_class = GunicornLog
threads = 2
