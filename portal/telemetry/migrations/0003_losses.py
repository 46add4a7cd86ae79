from django.db import migrations

from portal.core.db.migration_support import run_sql

_SAMPLE = ", ".join(f"ADD COLUMN {way}_drops bigint CHECK ({way}_drops >= 0)" for way in ("in", "out"))
_ROLLED_UP = ", ".join(f"ADD COLUMN {side}_{way}_drops float8" for side in "az" for way in ("in", "out"))


class Migration(migrations.Migration):
    """Add columns without defaults, so that PostgreSQL rewrites no partition."""

    dependencies = [
        ("telemetry", "0002_most_of_a_sample"),
    ]

    operations = [
        run_sql("telemetry", "losses"),
        migrations.RunSQL(f"ALTER TABLE telemetry_sample {_SAMPLE}"),
        *(
            migrations.RunSQL(f"ALTER TABLE telemetry_{table} {_ROLLED_UP}")
            for table in ("five_minutes", "hour", "day")
        ),
    ]
