from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0009_certificates_holds_and_passwords"),
        ("inventory", "0011_dead_router"),
        ("vll", "0014_ended_by_force"),
    ]

    operations = [
        migrations.AddField(
            model_name="orderevent",
            name="forced",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="routerevent",
            name="dead_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
