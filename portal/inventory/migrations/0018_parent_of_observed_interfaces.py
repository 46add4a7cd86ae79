from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the port of a sub-interface, which agents report since this release."""

    dependencies = [("inventory", "0017_silences_judged_so_far")]

    operations = [
        migrations.AddField(
            model_name="observedinterface",
            name="parent",
            field=models.CharField(blank=True, db_default="", default="", max_length=63),
        )
    ]
