"""Asking the broker itself, which is Redis, where Celery has no question for it."""

import redis
from django.conf import settings


def broker_client(*, patience_s: float) -> redis.Redis:
    """A new client, to be closed by its caller; connecting and each answer may take ``patience_s``.

    Whatever is asked of it raises redis.RedisError once it does not answer in time.
    """
    return redis.Redis.from_url(
        settings.CELERY_BROKER_URL, socket_timeout=patience_s, socket_connect_timeout=patience_s
    )
