"""The door for agents; ``portal.gunicorn_agents`` serves it with TLS and client certificates."""

import os

from django.core.wsgi import get_wsgi_application

os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings_agents"
application = get_wsgi_application()
