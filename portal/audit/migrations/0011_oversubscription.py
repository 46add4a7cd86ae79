from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0010_ended_by_force"),
        ("inventory", "0012_oversubscription"),
    ]

    operations = [
        migrations.AddField(
            model_name="portevent",
            name="oversubscription_percent",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
    ]
