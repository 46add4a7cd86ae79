"""What Celery runs for accounts."""

from importlib import import_module

from celery import shared_task
from django.conf import settings


@shared_task(name="accounts.clear_sessions", time_limit=60)
def clear_sessions() -> None:
    """Delete the sessions whose time is over; Django leaves them where they are."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
