from django.db import migrations

_COLUMNS = ", ".join(f"ADD COLUMN {side}_{way}_most real" for side in "az" for way in ("in", "out"))


class Migration(migrations.Migration):
    """Add columns without a default, so that PostgreSQL rewrites no partition."""

    dependencies = [
        ("telemetry", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL(f"ALTER TABLE telemetry_{table} {_COLUMNS}")
        for table in ("five_minutes", "hour", "day")
    ]
