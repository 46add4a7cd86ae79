"""When a router is asked again about what it has not confirmed; of what waits at this moment: at once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vll", "0023_changed_since_report")]

    operations = [
        migrations.AddField(
            model_name="routerconvergence", name="ask_at", field=models.DateTimeField(null=True)
        ),
        migrations.AddField(
            model_name="routerconvergence",
            name="changed",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
