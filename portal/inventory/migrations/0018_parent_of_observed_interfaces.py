from django.db import migrations, models


class Migration(migrations.Migration):
    """The port of a sub-interface, as agents report it since this release."""

    dependencies = [("inventory", "0017_silences_judged_so_far")]

    operations = [
        migrations.AddField(
            model_name="observedinterface",
            name="parent",
            field=models.CharField(blank=True, db_default="", default="", max_length=63),
        )
    ]
