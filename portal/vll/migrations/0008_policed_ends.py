"""Policing is a fact of an end, reported by its router; a line is policed where both its ends are."""

from django.db import migrations, models

# CASCADE takes the audit's triggers on the column along; they are made anew after each migration.
_DROP = "ALTER TABLE vll_vll DROP COLUMN policed CASCADE"
_ADD = "ALTER TABLE vll_vll ADD COLUMN policed boolean NOT NULL DEFAULT false"


class Migration(migrations.Migration):
    dependencies = [("vll", "0007_list_indexes")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(_DROP, _ADD)],
            state_operations=[migrations.RemoveField(model_name="vll", name="policed")],
        ),
        migrations.AddField(
            model_name="vllend",
            name="policed",
            field=models.BooleanField(default=False),
        ),
    ]
