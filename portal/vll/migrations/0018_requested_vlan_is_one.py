from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("vll", "0017_order_request_id"),
    ]

    operations = [
        migrations.AddConstraint(
            model_name="vllend",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("requested_outer_vlan__isnull", True),
                    ("requested_outer_vlan__range", (1, 4094)),
                    _connector="OR",
                ),
                name="a_requested_vlan_is_one",
            ),
        ),
    ]
