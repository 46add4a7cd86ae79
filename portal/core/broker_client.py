"""Asking the broker itself, which is Redis, where Celery has no question for it."""

from contextlib import AbstractContextManager

import redis
from django.conf import settings

from portal.core.redis_url import read_redis_url


def broker_client(*, patience_s: float) -> AbstractContextManager[redis.Redis]:
    """A new client for the block; connecting and each answer may take ``patience_s``.

    Whatever is asked of it raises redis.RedisError once it does not answer in time.
    """
    return read_redis_url(settings.REDIS_URL, variable="REDIS_URL").client(patience_s=patience_s)
