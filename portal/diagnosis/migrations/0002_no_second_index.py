import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Drop an index: another index of the table begins with the same column.

    Django's own alteration would check the reference of each row again, and lock the table meanwhile.
    """

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
