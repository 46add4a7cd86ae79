from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename fields in Django's state. The columns keep their names, because the previous release reads them."""

    dependencies = [
        ("inventory", "0020_rename_fields"),
        ("vll", "0020_index_of_lines_not_carried"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint(
                    model_name="tunnelpath",
                    name="what_is_proven_has_a_time",
                ),
                migrations.RemoveConstraint(
                    model_name="tunnelpath",
                    name="a_black_hole_lets_small_packets_pass",
                ),
                migrations.RemoveIndex(
                    model_name="planresult",
                    name="plan_by_order",
                ),
                migrations.AlterField(
                    model_name="forwardedlinkloss",
                    name="asked_at",
                    field=models.DateTimeField(db_column="asked_at"),
                ),
                migrations.RenameField(
                    model_name="forwardedlinkloss",
                    old_name="asked_at",
                    new_name="sent_at",
                ),
                migrations.AlterField(
                    model_name="linetest",
                    name="asked_by",
                    field=models.CharField(blank=True, db_column="asked_by", default="", max_length=150),
                ),
                migrations.RenameField(
                    model_name="linetest",
                    old_name="asked_by",
                    new_name="requested_by",
                ),
                migrations.AlterField(
                    model_name="planresult",
                    name="asked_at",
                    field=models.DateTimeField(db_column="asked_at"),
                ),
                migrations.RenameField(
                    model_name="planresult",
                    old_name="asked_at",
                    new_name="requested_at",
                ),
                migrations.AlterField(
                    model_name="planresult",
                    name="asked_by",
                    field=models.CharField(db_column="asked_by", max_length=150),
                ),
                migrations.RenameField(
                    model_name="planresult",
                    old_name="asked_by",
                    new_name="requested_by",
                ),
                migrations.AlterField(
                    model_name="routerconvergence",
                    name="ask_anew",
                    field=models.BooleanField(db_column="ask_anew", db_default=False, default=False),
                ),
                migrations.RenameField(
                    model_name="routerconvergence",
                    old_name="ask_anew",
                    new_name="intent_requested",
                ),
                migrations.AlterField(
                    model_name="routerconvergence",
                    name="ask_at",
                    field=models.DateTimeField(db_column="ask_at", null=True),
                ),
                migrations.RenameField(
                    model_name="routerconvergence",
                    old_name="ask_at",
                    new_name="next_query_at",
                ),
                migrations.AlterField(
                    model_name="tunnelpath",
                    name="proven_at",
                    field=models.DateTimeField(db_column="proven_at", null=True),
                ),
                migrations.RenameField(
                    model_name="tunnelpath",
                    old_name="proven_at",
                    new_name="verified_at",
                ),
                migrations.AlterField(
                    model_name="tunnelpath",
                    name="proven_ip_mtu",
                    field=models.PositiveIntegerField(db_column="proven_ip_mtu", null=True),
                ),
                migrations.RenameField(
                    model_name="tunnelpath",
                    old_name="proven_ip_mtu",
                    new_name="verified_ip_mtu",
                ),
                migrations.AlterField(
                    model_name="vllend",
                    name="status_look",
                    field=models.BigIntegerField(db_column="status_look", null=True),
                ),
                migrations.RenameField(
                    model_name="vllend",
                    old_name="status_look",
                    new_name="status_observation",
                ),
                migrations.AlterField(
                    model_name="vllend",
                    name="status",
                    field=models.CharField(
                        choices=[
                            ("unasked", "Unanswered"),
                            ("verified", "Verified"),
                            ("testing", "Testing"),
                            ("pending", "Pending"),
                            ("conflict", "Conflict"),
                            ("failed", "Failed"),
                            ("removed", "Removed"),
                        ],
                        default="unasked",
                        max_length=10,
                    ),
                ),
                migrations.AlterField(
                    model_name="vlltombstone",
                    name="status",
                    field=models.CharField(
                        choices=[
                            ("unasked", "Unanswered"),
                            ("verified", "Verified"),
                            ("testing", "Testing"),
                            ("pending", "Pending"),
                            ("conflict", "Conflict"),
                            ("failed", "Failed"),
                            ("removed", "Removed"),
                        ],
                        default="unasked",
                        max_length=10,
                    ),
                ),
                migrations.AddIndex(
                    model_name="planresult",
                    index=models.Index(fields=["order", "-requested_at"], name="plan_by_order"),
                ),
                migrations.AddConstraint(
                    model_name="tunnelpath",
                    constraint=models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("verified_at", None), ("verified_ip_mtu", None)),
                            models.Q(("verified_at__isnull", False), ("verified_ip_mtu__isnull", False)),
                            _connector="OR",
                        ),
                        name="what_is_proven_has_a_time",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="tunnelpath",
                    constraint=models.CheckConstraint(
                        condition=models.Q(
                            ("black_hole_since", None), ("verified_ip_mtu__isnull", False), _connector="OR"
                        ),
                        name="a_black_hole_lets_small_packets_pass",
                    ),
                ),
            ],
        ),
    ]
