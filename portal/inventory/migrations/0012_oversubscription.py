"""What may be booked as a part of the speed. Every number stays as it is; those that are no whole per cent of
the speed stay numbers of their own."""

from django.db import migrations, models
from django.db.models import F, Q

FORWARD = """
UPDATE inventory_port SET oversubscription_percent = bookable_bps * 100 / speed_bps
WHERE bookable_bps * 100 % speed_bps = 0 AND bookable_bps * 100 / speed_bps BETWEEN 1 AND 5000;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("inventory", "0011_dead_router"),
    ]

    operations = [
        migrations.AddField(
            model_name="port",
            name="oversubscription_percent",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.RunSQL(FORWARD, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="port",
            constraint=models.CheckConstraint(
                condition=Q(
                    ("oversubscription_percent__isnull", True),
                    Q(
                        ("bookable_bps", F("speed_bps") * F("oversubscription_percent") / 100),
                        ("oversubscription_percent__range", (1, 5000)),
                    ),
                    _connector="OR",
                ),
                name="oversubscription_says_what_is_bookable",
            ),
        ),
    ]
