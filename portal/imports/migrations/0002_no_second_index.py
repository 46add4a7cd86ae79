import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Another index of the table begins with the same column. Without Django's own alteration, which would check
    each row's reference anew, and let nobody in meanwhile."""

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
