from django.apps import AppConfig


class VllConfig(AppConfig):
    name = "portal.vll"
