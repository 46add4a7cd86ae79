import django.contrib.postgres.indexes
import django.db.models.functions.text
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_people_and_tokens"),
        ("inventory", "0005_enrolment_and_maintenance"),
        ("vll", "0006_holds"),
    ]

    operations = [
        # A trusted extension: whoever owns the database may create it.
        TrigramExtension(),
        migrations.AddIndex(
            model_name="order",
            index=models.Index(fields=["-ordered_at", "-id"], name="order_by_age"),
        ),
        migrations.AddIndex(
            model_name="vll",
            index=models.Index(fields=["-created_at", "-id"], name="vll_by_age"),
        ),
        migrations.AddIndex(
            model_name="vll",
            index=models.Index(condition=models.Q(("vni__isnull", False)), fields=["vni"], name="vll_by_vni"),
        ),
        migrations.AddIndex(
            model_name="vll",
            index=django.contrib.postgres.indexes.GinIndex(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.text.Upper("description"), name="gin_trgm_ops"
                ),
                name="vll_by_part_of_description",
            ),
        ),
        migrations.AddIndex(
            model_name="vllend",
            index=models.Index(fields=["outer_vlan"], name="vll_end_by_outer_vlan"),
        ),
        migrations.AddIndex(
            model_name="vllend",
            index=models.Index(
                condition=models.Q(("inner_vlan__isnull", False)),
                fields=["inner_vlan"],
                name="vll_end_by_inner_vlan",
            ),
        ),
    ]
