"""The portal's, and the depot."""

from portal.settings import *  # noqa: F403
from portal.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.integration.depot"]
