"""The tasks of NetBox, by the names that Celery knows."""

SYNC = "netbox.sync"
