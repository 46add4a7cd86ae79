"""Samples that were set aside wait for a decision; frozen months may be corrected."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import portal.telemetry.models

# What is set aside already came without the time that its report was sent at: by how much its clock was wrong
# was not kept, so nobody can accept it.
_MOVE = """
INSERT INTO telemetry_quarantine (router_id, reason, first_ms, last_ms, samples, waited, first_received_at,
                                  last_received_at, state, why)
SELECT router_id, reason, min((sample ->> 'from_ms')::bigint), max((sample ->> 'to_ms')::bigint),
       sum(jsonb_array_length(sample -> 'ends')), 0, min(received_at), max(received_at), 'undecided', ''
FROM telemetry_quarantinedsample GROUP BY router_id, reason;
UPDATE telemetry_quarantinedsample AS one SET quarantine_id = found.id FROM telemetry_quarantine AS found
WHERE found.router_id = one.router_id AND found.reason = one.reason;
INSERT INTO telemetry_quarantinedend (quarantine_id, vll_id, side, samples, added, left_out)
SELECT quarantine_id, (one_end ->> 'vll')::uuid, one_end ->> 'side', count(*), 0, 0
FROM telemetry_quarantinedsample, jsonb_array_elements(sample -> 'ends') AS one_end
GROUP BY quarantine_id, one_end ->> 'vll', one_end ->> 'side';
INSERT INTO telemetry_quarantinedrun (router_id, boot_id, seqs, last_received_at)
SELECT router_id, (sample ->> 'boot_id')::uuid,
       range_agg(int8range((sample ->> 'seq')::bigint, (sample ->> 'seq')::bigint, '[]')), max(received_at)
FROM telemetry_quarantinedsample GROUP BY router_id, sample ->> 'boot_id';
-- The table is altered next, in the same transaction.
SET CONSTRAINTS ALL IMMEDIATE;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("inventory", "0019_provenance"),
        ("telemetry", "0010_judged_silences"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Quarantine",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "router",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="quarantines",
                        to="inventory.router",
                    ),
                ),
                ("reason", models.CharField(max_length=50)),
                ("month", models.DateField(null=True)),
                ("offset_ms", models.BigIntegerField(null=True)),
                ("first_ms", models.BigIntegerField()),
                ("last_ms", models.BigIntegerField()),
                ("samples", models.BigIntegerField(default=0)),
                ("waited", models.BigIntegerField(default=0)),
                ("first_received_at", models.DateTimeField()),
                ("last_received_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("undecided", "Undecided"),
                            ("accepted", "Accepted"),
                            ("discarded", "Discarded"),
                            ("expired", "Expired"),
                        ],
                        default="undecided",
                        max_length=10,
                    ),
                ),
                ("decided_at", models.DateTimeField(null=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("why", models.CharField(default="", max_length=500)),
                ("counted_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="QuarantinedEnd",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "quarantine",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ends",
                        to="telemetry.quarantine",
                    ),
                ),
                ("vll_id", models.UUIDField()),
                ("side", models.CharField(max_length=1)),
                ("samples", models.BigIntegerField()),
                ("added", models.PositiveIntegerField(default=0)),
                ("left_out", models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="QuarantinedFiveMinutes",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "quarantine_id",
                        "vll_id",
                        "side",
                        "start_at",
                        "policed",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "quarantine",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="five_minutes",
                        to="telemetry.quarantine",
                    ),
                ),
                ("vll_id", models.UUIDField()),
                ("side", models.CharField(max_length=1)),
                ("start_at", models.DateTimeField()),
                ("policed", models.BooleanField()),
                ("covered_ms", models.BigIntegerField()),
                ("in_bytes", models.FloatField()),
                ("in_packets", models.FloatField()),
                ("out_bytes", models.FloatField()),
                ("out_packets", models.FloatField()),
                ("conform_bytes", models.FloatField(null=True)),
                ("conform_packets", models.FloatField(null=True)),
                ("exceed_bytes", models.FloatField(null=True)),
                ("exceed_packets", models.FloatField(null=True)),
                ("violate_bytes", models.FloatField(null=True)),
                ("violate_packets", models.FloatField(null=True)),
                ("simulated", models.BooleanField()),
                ("accepted", models.BooleanField(db_default=False, default=False)),
            ],
        ),
        migrations.CreateModel(
            name="QuarantinedRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "router",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="inventory.router"
                    ),
                ),
                ("boot_id", models.UUIDField()),
                ("seqs", portal.telemetry.models.Multirange()),
                ("last_received_at", models.DateTimeField()),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="monthlypercentile",
            name="a_month_is_frozen_once",
        ),
        migrations.AddField(
            model_name="monthlypercentile",
            name="correction",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddConstraint(
            model_name="monthlypercentile",
            constraint=models.UniqueConstraint(
                fields=("vll_id", "month", "side", "correction"), name="a_month_is_frozen_once"
            ),
        ),
        migrations.AddField(
            model_name="quarantinedsample",
            name="quarantine",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="examples",
                to="telemetry.quarantine",
            ),
        ),
        migrations.AddIndex(
            model_name="quarantine",
            index=models.Index(
                condition=models.Q(("counted_at", None), ("state__in", ("undecided", "accepted"))),
                fields=["router", "month"],
                name="quarantine_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="quarantine",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("decided_at", None), ("state", "undecided")),
                    models.Q(models.Q(("state", "undecided"), _negated=True), ("decided_at__isnull", False)),
                    _connector="OR",
                ),
                name="a_decision_has_its_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="quarantine",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "accepted"), _negated=True), ("month__isnull", False), _connector="OR"
                ),
                name="what_has_no_time_is_not_accepted",
            ),
        ),
        migrations.AddConstraint(
            model_name="quarantine",
            constraint=models.CheckConstraint(
                condition=models.Q(("month", None), ("month__day", 1), _connector="OR"),
                name="a_quarantine_names_its_month_by_its_first",
            ),
        ),
        migrations.AddIndex(
            model_name="quarantinedend",
            index=models.Index(fields=["vll_id"], name="quarantined_end_by_vll"),
        ),
        migrations.AddConstraint(
            model_name="quarantinedend",
            constraint=models.UniqueConstraint(
                fields=("quarantine", "vll_id", "side"), name="an_end_is_set_aside_once"
            ),
        ),
        migrations.AddIndex(
            model_name="quarantinedfiveminutes",
            index=models.Index(fields=["vll_id", "start_at"], name="quarantined_five_minutes"),
        ),
        migrations.AddConstraint(
            model_name="quarantinedfiveminutes",
            constraint=models.CheckConstraint(
                condition=models.Q(("covered_ms__gt", 0)), name="quarantined_five_minutes_cover_time"
            ),
        ),
        migrations.AddConstraint(
            model_name="quarantinedrun",
            constraint=models.UniqueConstraint(fields=("router", "boot_id"), name="a_run_is_noted_once"),
        ),
        migrations.RunSQL(_MOVE, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="quarantinedsample",
            name="quarantine",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="examples",
                to="telemetry.quarantine",
            ),
        ),
        migrations.RemoveField(
            model_name="quarantinedsample",
            name="router",
        ),
    ]
