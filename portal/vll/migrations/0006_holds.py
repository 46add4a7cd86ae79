import uuid

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_ordering_policy"),
        ("vll", "0005_ends_stand_in_one_place"),
    ]

    operations = [
        migrations.CreateModel(
            name="Hold",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("slot", models.PositiveSmallIntegerField()),
                ("held_by", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(db_index=True)),
                ("renewals", models.PositiveSmallIntegerField(default=0)),
                ("cir_bps", models.BigIntegerField()),
                ("ends", models.JSONField()),
            ],
        ),
        migrations.AddField(
            model_name="hold",
            name="customer",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="holds", to="accounts.customer"
            ),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.UniqueConstraint(fields=("customer", "slot"), name="a_hold_has_its_own_slot"),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.CheckConstraint(
                condition=models.Q(("slot__range", (1, 5))), name="a_customer_has_five_holds"
            ),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.CheckConstraint(
                condition=models.Q(("renewals__lte", 3)), name="a_hold_is_renewed_three_times"
            ),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.CheckConstraint(
                condition=models.Q(("expires_at__gt", models.F("created_at"))),
                name="a_hold_ends_after_it_begins",
            ),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.CheckConstraint(
                condition=models.Q(("cir_bps__gt", 0)), name="a_hold_books_something"
            ),
        ),
    ]
