import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Drop an index, because another index of the table begins with the same column.

    Django's own alteration would check each row's reference again and lock the table meanwhile.
    """

    atomic = False
    dependencies = [
        ("notifications", "0002_black_holes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS notifications_mailoptout_user_id_92d1c17b"
                ),
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS notifications_mail_user_id_1ef2c9bf"),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS notifications_mailline_mail_id_d47e57ad"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS notifications_delivery_webhook_id_e35814dd"
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="delivery",
                    name="webhook",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="notifications.webhook",
                    ),
                ),
                migrations.AlterField(
                    model_name="mail",
                    name="user",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mails",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                migrations.AlterField(
                    model_name="mailline",
                    name="mail",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lines",
                        to="notifications.mail",
                    ),
                ),
                migrations.AlterField(
                    model_name="mailoptout",
                    name="user",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mail_opt_outs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
    ]
