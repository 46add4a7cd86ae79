from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename fields in Django's state. The columns keep their names, because the previous release reads them."""

    dependencies = [
        ("telemetry", "0006_unjudged_five_minutes"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex(
                    model_name="agentapiuptime",
                    name="agent_api_uptime_by_end",
                ),
                migrations.AlterField(
                    model_name="agentapiuptime",
                    name="seen_at",
                    field=models.DateTimeField(db_column="seen_at"),
                ),
                migrations.RenameField(
                    model_name="agentapiuptime",
                    old_name="seen_at",
                    new_name="last_recorded_at",
                ),
                migrations.AddIndex(
                    model_name="agentapiuptime",
                    index=models.Index(fields=["last_recorded_at"], name="agent_api_uptime_by_end"),
                ),
            ],
        ),
    ]
