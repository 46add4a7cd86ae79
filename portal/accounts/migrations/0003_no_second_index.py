import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Drop an index, because another index of the table begins with the same column.

    Django's own alteration would check each row's reference again and lock the table meanwhile.
    """

    atomic = False
    dependencies = [
        ("accounts", "0002_language"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS accounts_membership_user_id_487fb39e"),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="membership",
                    name="user",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
    ]
