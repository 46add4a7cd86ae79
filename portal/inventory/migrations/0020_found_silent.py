"""A router is found silent before its lines are marked; a report is compared with all lines after that."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inventory", "0019_provenance")]

    operations = [
        migrations.AddField(
            model_name="observedrouter",
            name="found_silent",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
