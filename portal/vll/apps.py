from django.apps import AppConfig


class VllConfig(AppConfig):
    name = "portal.vll"

    def ready(self) -> None:
        from portal.vll.inventory_rules import line_rules_register

        line_rules_register()
