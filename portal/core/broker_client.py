"""A client of the broker (Redis), for queries that Celery has no function for."""

from contextlib import AbstractContextManager

import redis
from django.conf import settings

from portal.core.redis_url import read_redis_url


def broker_client(*, patience_s: float) -> AbstractContextManager[redis.Redis]:
    """Return a context manager with a new client.

    A command raises redis.RedisError if connecting or a response takes longer than ``patience_s`` seconds.
    """
    return read_redis_url(settings.REDIS_URL, variable="REDIS_URL").client(patience_s=patience_s)
