"""The agent API; ``portal.processes.gunicorn_agent_api`` serves it with TLS and client certificates."""

import os

from django.core.wsgi import get_wsgi_application

os.environ["DJANGO_SETTINGS_MODULE"] = "portal.processes.settings_agent_api"
application = get_wsgi_application()
