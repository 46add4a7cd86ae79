import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Drop an index, because another index of the table begins with the same column.

    Django's own alteration would check each row's reference again, and lock the table during this time.
    """

    atomic = False
    dependencies = [
        ("imports", "0001_initial"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS imports_importrow_owner_id_828e13e1"),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="importrow",
                    name="owner",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rows",
                        to="imports.import",
                    ),
                ),
            ],
        ),
    ]
