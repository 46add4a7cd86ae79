"""A mail may be about many lines: what a reader was told of each is kept by line."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Mails of the release before were about one line each.
_LINES = """
INSERT INTO notifications_mailline (mail_id, vll_id, event_id, said)
SELECT id, vll_id, event_id,
       CASE kind WHEN 'vll.op-down' THEN 'down' WHEN 'vll.op-up' THEN 'up' ELSE 'drift' END
FROM notifications_mail
WHERE kind IN ('vll.op-down', 'vll.op-up', 'vll.drift') AND vll_id IS NOT NULL AND event_id IS NOT NULL
  AND state IN ('pending', 'sent')
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0009_team_scope"),
        ("notifications", "0002_account_mails"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="MailLine",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("vll_id", models.UUIDField()),
                ("event_id", models.BigIntegerField()),
                (
                    "said",
                    models.CharField(
                        choices=[("down", "Down"), ("up", "Up"), ("drift", "Drift"), ("silent", "Silent")],
                        max_length=10,
                    ),
                ),
            ],
        ),
        migrations.RemoveIndex(
            model_name="mail",
            name="mail_of_status",
        ),
        migrations.AddField(
            model_name="mail",
            name="cause",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
        migrations.AddIndex(
            model_name="mail",
            index=models.Index(
                condition=models.Q(("cause", ""), _negated=True),
                fields=["user", "cause"],
                name="mail_by_cause",
            ),
        ),
        migrations.AddField(
            model_name="mailline",
            name="mail",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="lines", to="notifications.mail"
            ),
        ),
        migrations.AddIndex(
            model_name="mailline",
            index=models.Index(fields=["vll_id", "-event_id"], name="mail_line_by_vll"),
        ),
        migrations.AddConstraint(
            model_name="mailline",
            constraint=models.UniqueConstraint(fields=("mail", "vll_id"), name="a_mail_names_a_line_once"),
        ),
        migrations.AddConstraint(
            model_name="mailline",
            constraint=models.CheckConstraint(
                condition=models.Q(("said__in", ["down", "up", "drift", "silent"])),
                name="what_is_said_of_a_line_is_known",
            ),
        ),
        migrations.RunSQL(_LINES, migrations.RunSQL.noop),
    ]
