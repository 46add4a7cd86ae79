"""The portal's, and the app to migrate."""

from portal.settings import *  # noqa: F403
from portal.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.integration.app_to_migrate"]
