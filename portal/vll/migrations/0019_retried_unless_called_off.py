from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("vll", "0018_requested_vlan_is_one"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="order",
            name="an_order_is_retried_once",
        ),
        migrations.AddConstraint(
            model_name="order",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["cancelled", "rejected"]), _negated=True),
                fields=("retry_of",),
                name="an_order_is_retried_once",
            ),
        ),
    ]
