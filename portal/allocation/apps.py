from django.apps import AppConfig


class AllocationConfig(AppConfig):
    name = "portal.allocation"
