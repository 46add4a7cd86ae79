from django.db import migrations, models


class Migration(migrations.Migration):
    """Drop an index: another index of the table begins with the same column.

    Django's own alteration would check the reference of each row again, and lock the table meanwhile.
    """

    atomic = False
    dependencies = [
        ("allocation", "0002_gre_keys"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS allocation_portvlanlease_holder_d32d10c1"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS allocation_bandwidthbooking_holder_541dce16"
                ),
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS allocation_corebooking_holder_7337ba0d"),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="bandwidthbooking",
                    name="holder",
                    field=models.UUIDField(),
                ),
                migrations.AlterField(
                    model_name="corebooking",
                    name="holder",
                    field=models.UUIDField(),
                ),
                migrations.AlterField(
                    model_name="portvlanlease",
                    name="holder",
                    field=models.UUIDField(),
                ),
            ],
        ),
    ]
