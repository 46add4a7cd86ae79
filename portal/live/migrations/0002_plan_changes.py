from django.db import migrations

from portal.core.db.migration_support import run_sql


class Migration(migrations.Migration):
    dependencies = [
        ("live", "0001_page_changes"),
    ]

    operations = [
        run_sql("live", "plan_changes"),
    ]
