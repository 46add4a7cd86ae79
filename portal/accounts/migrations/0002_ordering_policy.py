from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [
        migrations.AddField("customer", "approve_up_to_bps", models.BigIntegerField(blank=True, null=True)),
        migrations.AddField("customer", "cooling_off_s", models.PositiveIntegerField(blank=True, null=True)),
        migrations.AddConstraint(
            "customer",
            models.CheckConstraint(
                condition=Q(approve_up_to_bps__isnull=True) | Q(approve_up_to_bps__gte=0),
                name="approval_limit_is_not_negative",
            ),
        ),
        migrations.AddConstraint(
            "customer",
            models.CheckConstraint(
                condition=Q(cooling_off_s__isnull=True) | Q(cooling_off_s__lte=90 * 86400),
                name="cooling_off_lasts_90_days_at_most",
            ),
        ),
    ]
