import gc

# With Python's default threshold, garbage collection took an eighth of a program's start. Set the threshold
# first, because starting makes more objects than anything later.
gc.set_threshold(10_000, 10, 10)

from portal.celery import app as celery_app  # noqa: E402

__all__ = ["celery_app"]
