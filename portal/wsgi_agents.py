"""The door for agents. Serve it with TLS and required client certificates:

gunicorn portal.wsgi_agents --worker-class gthread --threads 8 --bind 0.0.0.0:8443
  --certfile portal.pem --keyfile portal.key --ca-certs ca.pem --cert-reqs 2
"""

import os

from django.core.wsgi import get_wsgi_application

os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings_agents"
application = get_wsgi_application()
