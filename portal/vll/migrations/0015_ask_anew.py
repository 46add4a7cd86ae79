from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("vll", "0014_ended_by_force"),
    ]

    operations = [
        migrations.AddField(
            model_name="routerconvergence",
            name="ask_anew",
            field=models.BooleanField(default=False),
        ),
    ]
