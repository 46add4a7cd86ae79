"""Refuse a line break after a router's name, in the audit trail too."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0010_underlay_table_and_link_losses"),
    ]

    operations = [
        migrations.AlterField(
            model_name="routerevent",
            name="name",
            field=models.CharField(
                max_length=63, validators=[django.core.validators.RegexValidator("^[a-z0-9-]{1,63}\\Z")]
            ),
        ),
    ]
