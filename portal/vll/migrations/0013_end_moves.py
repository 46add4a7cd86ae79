import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inventory", "0010_plugins_and_linux_cp"),
        ("vll", "0012_described"),
    ]

    operations = [
        migrations.CreateModel(
            name="EndMove",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("side", models.CharField(max_length=1)),
                ("left_at", models.DateTimeField()),
                (
                    "router",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="inventory.router",
                    ),
                ),
                (
                    "vll",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="moves", to="vll.vll"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["router", "vll"], name="end_move_by_router")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("side__in", ["a", "z"])), name="moved_side_is_a_or_z"
                    )
                ],
            },
        ),
    ]
