"""The WSGI application for people and API clients."""

import os
from importlib import import_module

from django.core.wsgi import get_wsgi_application

from portal.core.http.request_charset import Utf8Request

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
application = get_wsgi_application()
application.request_class = Utf8Request
# Building the API's schema takes half a second. Do it once before the processes fork.
import_module("portal.api.openapi.document").document()
