from django.db import migrations

from portal.core.db.migration_support import run_sql


class Migration(migrations.Migration):
    dependencies = [
        ("diagnosis", "0001_initial"),
        ("inventory", "0007_probes"),
        ("vll", "0009_since_when_a_line_is_so"),
    ]

    operations = [
        run_sql("live", "page_changes"),
    ]
