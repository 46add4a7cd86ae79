import django.db.models.deletion
from django.db import migrations, models

# The tables of quarantined samples without the decisions, and their references to other tables.
_SUMS = {
    "quarantinedend": "quarantine",
    "quarantinedfiveminutes": "quarantine",
    "quarantinedrun": "router",
    "quarantinedsample": "quarantine",
}


class Migration(migrations.Migration):
    """Add the clocks of routers, and remove the quarantine of samples from Django's state.

    The tables and columns of the quarantine stay, because the previous release uses them. The next release drops
    them. Their foreign keys go: nothing would delete their rows together with the rows that they refer to.
    """

    linter_exceptions = {
        "ban-drop-constraint": "the previous release works without these foreign keys",
    }

    dependencies = [
        ("telemetry", "0007_rename_fields"),
        ("inventory", "0021_rename_held_fields"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentclock",
            name="boot_clocks",
            field=models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
        ),
        migrations.AddField(
            model_name="agentclock",
            name="sample_offset_ms",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        *(
            migrations.AlterField(
                model_name=model,
                name=field,
                field=models.ForeignKey(
                    db_constraint=False,
                    db_index=model == "quarantinedsample",
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="inventory.router" if field == "router" else "telemetry.quarantine",
                ),
            )
            for model, field in _SUMS.items()
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                *(migrations.DeleteModel(name=model) for model in _SUMS),
                migrations.RemoveIndex(model_name="quarantine", name="quarantine_open"),
                *(
                    migrations.RemoveConstraint(model_name="quarantine", name=name)
                    for name in (
                        "a_decision_has_its_time",
                        "what_has_no_time_is_not_accepted",
                        "a_quarantine_names_its_month_by_its_first",
                    )
                ),
                *(
                    migrations.RemoveField(model_name="quarantine", name=name)
                    for name in (
                        "first_ms",
                        "last_ms",
                        "samples",
                        "waited",
                        "first_received_at",
                        "last_received_at",
                        "counted_at",
                    )
                ),
            ],
        ),
    ]
