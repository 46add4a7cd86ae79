"""Refuse a line break after a router's name, which ``$`` in a regular expression of Python allows."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inventory", "0015_no_index_for_like")]

    operations = [
        migrations.AlterField(
            model_name="router",
            name="name",
            field=models.CharField(
                max_length=63,
                unique=True,
                validators=[django.core.validators.RegexValidator("^[a-z0-9-]{1,63}\\Z")],
            ),
        )
    ]
