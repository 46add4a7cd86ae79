import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Drop an index: another index of the table begins with the same column.

    Django's own alteration would check the reference of each row again, and lock the table meanwhile.
    """

    atomic = False
    dependencies = [
        ("inventory", "0014_no_second_index"),
        ("telemetry", "0004_round_trips"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS telemetry_quarantinedfiveminutes_quarantine_id_ccf35add"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS telemetry_quarantinedend_quarantine_id_3170d7fd"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS telemetry_quarantinedrun_router_id_4a2e4c3c"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS telemetry_routerevent_router_id_1bd08174"
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="quarantinedend",
                    name="quarantine",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ends",
                        to="telemetry.quarantine",
                    ),
                ),
                migrations.AlterField(
                    model_name="quarantinedfiveminutes",
                    name="quarantine",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="five_minutes",
                        to="telemetry.quarantine",
                    ),
                ),
                migrations.AlterField(
                    model_name="quarantinedrun",
                    name="router",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="inventory.router",
                    ),
                ),
                migrations.AlterField(
                    model_name="routerevent",
                    name="router",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="inventory.router",
                    ),
                ),
            ],
        ),
    ]
