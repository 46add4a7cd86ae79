import gc

# As often as Python looks for garbage by itself, an eighth of a program's start went into that. Before all
# else: starting makes more objects than anything later does.
gc.set_threshold(10_000, 10, 10)

from portal.celery import app as celery_app  # noqa: E402

__all__ = ["celery_app"]
