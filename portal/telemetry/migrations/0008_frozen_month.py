from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("telemetry", "0007_policer_counts"),
    ]

    operations = [
        migrations.CreateModel(
            name="FrozenMonth",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("month", models.DateField(unique=True)),
                ("frozen_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("month__day", 1)), name="a_frozen_month_is_named_by_its_first"
                    )
                ],
            },
        ),
    ]
