import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename the model in Django's state. The table keeps its name, because the previous release uses it."""

    dependencies = [
        ("vll", "0022_rename_held_fields"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel(old_name="LineTest", new_name="ActivationTest"),
                migrations.AlterModelTable(name="activationtest", table="vll_linetest"),
                migrations.AlterField(
                    model_name="activationtest",
                    name="vll",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="activation_tests",
                        to="vll.vll",
                    ),
                ),
                migrations.AlterField(
                    model_name="activationtest",
                    name="order",
                    field=models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="activation_tests",
                        to="vll.order",
                    ),
                ),
            ],
        ),
    ]
