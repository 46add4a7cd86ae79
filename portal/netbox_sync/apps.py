from django.apps import AppConfig


class NetboxSyncConfig(AppConfig):
    name = "portal.netbox_sync"
    label = "netbox_sync"
