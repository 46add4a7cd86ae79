"""One user for each name, however it is written."""

from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.core.management.base import CommandError
from django.db import migrations, models
from django.db.models.functions import Upper


def stop_at_twins(apps: Any, editor: Any) -> None:
    """Raises CommandError with the names that the constraint would not take."""
    users = apps.get_model("accounts", "User").objects.order_by().annotate(same=Upper("username"))
    found = (
        users.values("same")
        .annotate(names=ArrayAgg("username"), count=models.Count("pk"))
        .filter(count__gt=1)
    )
    twins = sorted(sorted(each["names"]) for each in found)
    if not twins:
        return
    listed, one = "; ".join(" and ".join(names) for names in twins), twins[0][0]
    rename = f"UPDATE accounts_user SET username = '{one}-2' WHERE username = '{one}';"  # noqa: S608 - to be read
    raise CommandError(
        f"User names that differ in case alone: {listed}. Nobody signs in by them. Rename all but one of each,"
        f" such as by {rename} then run this again."
    )


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_made_with")]

    operations = [
        migrations.RunPython(stop_at_twins, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.UniqueConstraint(Upper("username"), name="one_user_per_name"),
        ),
    ]
