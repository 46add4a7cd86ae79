from django.db import migrations

from portal.core.db.migration_support import run_sql


class Migration(migrations.Migration):
    dependencies = [
        ("netbox_sync", "0001_initial"),
    ]

    operations = [
        run_sql("netbox_sync", "page_changes"),
    ]
