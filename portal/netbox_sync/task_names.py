"""Celery's names of the tasks of NetBox."""

SYNC = "netbox.sync"
