import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename fields in Django's state. The columns keep their names, because the previous release reads them."""

    dependencies = [
        ("accounts", "0004_no_index_for_like"),
        ("inventory", "0021_rename_held_fields"),
        ("vll", "0021_rename_fields"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint(
                    model_name="forwardedlinkloss",
                    name="an_end_held_down_is_a_or_z",
                ),
                migrations.RemoveIndex(
                    model_name="vllend",
                    name="vll_end_held_down",
                ),
                migrations.AlterField(
                    model_name="forwardedlinkloss",
                    name="held",
                    field=models.CharField(blank=True, db_column="held", max_length=1),
                ),
                migrations.RenameField(
                    model_name="forwardedlinkloss",
                    old_name="held",
                    new_name="shut_side",
                ),
                migrations.AlterField(
                    model_name="hold",
                    name="held_by",
                    field=models.CharField(db_column="held_by", max_length=150),
                ),
                migrations.RenameField(
                    model_name="hold",
                    old_name="held_by",
                    new_name="reserved_by",
                ),
                migrations.AlterField(
                    model_name="vllend",
                    name="held_down",
                    field=models.BooleanField(db_column="held_down", db_default=False, default=False),
                ),
                migrations.RenameField(
                    model_name="vllend",
                    old_name="held_down",
                    new_name="shut_down",
                ),
                migrations.AlterField(
                    model_name="hold",
                    name="customer",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reservations",
                        to="accounts.customer",
                    ),
                ),
                migrations.AlterField(
                    model_name="order",
                    name="state",
                    field=models.CharField(
                        choices=[
                            ("acknowledged", "Acknowledged"),
                            ("held", "Pending approval"),
                            ("inProgress", "In Progress"),
                            ("pendingCancellation", "Pending Cancellation"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                            ("rejected", "Rejected"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="acknowledged",
                        max_length=20,
                    ),
                ),
                migrations.AddIndex(
                    model_name="vllend",
                    index=models.Index(
                        condition=models.Q(("shut_down", True)), fields=["vll"], name="vll_end_held_down"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="forwardedlinkloss",
                    constraint=models.CheckConstraint(
                        condition=models.Q(("shut_side__in", ["", "a", "z"])),
                        name="an_end_held_down_is_a_or_z",
                    ),
                ),
            ],
        ),
    ]
