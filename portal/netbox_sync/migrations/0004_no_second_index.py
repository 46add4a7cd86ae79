from django.db import migrations


class Migration(migrations.Migration):
    """The primary key says the same."""

    dependencies = [
        ("netbox_sync", "0003_l2vpns_of_others"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="netboxrun",
            name="netbox_run_newest_first",
        ),
    ]
