"""Which events others are still to be told of; of those that happened before, nobody is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("events", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="event",
            name="untold",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(condition=models.Q(("untold", True)), fields=["id"], name="event_untold"),
        ),
    ]
