from django.db import migrations, models


class Migration(migrations.Migration):
    """Let an event whose notifications cannot be created wait while others proceed."""

    dependencies = [("events", "0001_initial")]

    operations = [
        migrations.AddField("event", "fan_out_retry_at", models.DateTimeField(null=True)),
    ]
