import uuid

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inventory", "0002_topology_version"),
        ("vll", "0003_observed_in_sync"),
    ]

    operations = [
        migrations.CreateModel(
            name="VllTombstone",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("side", models.CharField(max_length=1)),
                ("revision", models.PositiveIntegerField()),
                ("leases", models.UUIDField(db_index=True, default=uuid.uuid4)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("unasked", "Unasked"),
                            ("verified", "Verified"),
                            ("pending", "Pending"),
                            ("conflict", "Conflict"),
                            ("failed", "Failed"),
                            ("removed", "Removed"),
                        ],
                        default="unasked",
                        max_length=10,
                    ),
                ),
                ("status_at", models.DateTimeField(null=True)),
                ("reason", models.JSONField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name="order",
            name="after",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="order",
            name="approved_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="order",
            name="before",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="vll",
            name="decommission_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name="order",
            index=models.Index(condition=models.Q(("state", "held")), fields=["vll"], name="order_held"),
        ),
        migrations.AddIndex(
            model_name="vll",
            index=models.Index(
                condition=models.Q(("decommission_at__isnull", False), ("lifecycle", "pendingTerminate")),
                fields=["decommission_at"],
                name="vll_cooling_off",
            ),
        ),
        migrations.AddConstraint(
            model_name="order",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("action", "modify"), _negated=True),
                    models.Q(("after__isnull", False), ("before__isnull", False)),
                    _connector="OR",
                ),
                name="a_modify_order_knows_the_way_back",
            ),
        ),
        migrations.AddConstraint(
            model_name="order",
            constraint=models.UniqueConstraint(fields=("retry_of",), name="an_order_is_retried_once"),
        ),
        migrations.AddConstraint(
            model_name="vll",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("decommission_at__isnull", True),
                    ("lifecycle__in", ["pendingTerminate", "terminated"]),
                    _connector="OR",
                ),
                name="only_a_vll_on_its_way_out_cools_off",
            ),
        ),
        migrations.AddField(
            model_name="vlltombstone",
            name="router",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="vll_tombstones",
                to="inventory.router",
            ),
        ),
        migrations.AddField(
            model_name="vlltombstone",
            name="vll",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="tombstones", to="vll.vll"
            ),
        ),
        migrations.AddConstraint(
            model_name="vlltombstone",
            constraint=models.UniqueConstraint(
                fields=("vll", "side", "router"), name="one_tombstone_per_end_and_router"
            ),
        ),
        migrations.AddConstraint(
            model_name="vlltombstone",
            constraint=models.CheckConstraint(
                condition=models.Q(("side__in", ["a", "z"])), name="tombstone_side_is_a_or_z"
            ),
        ),
        migrations.AddConstraint(
            model_name="vlltombstone",
            constraint=models.CheckConstraint(
                condition=models.Q(("revision__gte", 1)), name="tombstone_revision_is_a_revision"
            ),
        ),
    ]
