from django.db import migrations

from portal.core.db.migration_support import run_sql


class Migration(migrations.Migration):
    dependencies = [
        ("telemetry", "0003_losses"),
    ]

    operations = [
        run_sql("telemetry", "round_trips"),
    ]
