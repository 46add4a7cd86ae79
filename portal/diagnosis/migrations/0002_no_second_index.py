import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Another index of the table begins with the same column. Without Django's own alteration, which would check
    each row's reference anew, and let nobody in meanwhile."""

    atomic = False
    dependencies = [
        ("diagnosis", "0001_initial"),
        ("vll", "0013_no_second_index"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS diagnosis_troublereport_vll_id_3312be03"
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="troublereport",
                    name="vll",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="trouble_reports",
                        to="vll.vll",
                    ),
                ),
            ],
        ),
    ]
