from django.db import migrations

from portal.core.db.migration_support import run_sql


class Migration(migrations.Migration):
    dependencies = [
        ("notifications", "0003_no_second_index"),
    ]

    operations = [
        run_sql("notifications", "page_changes"),
    ]
