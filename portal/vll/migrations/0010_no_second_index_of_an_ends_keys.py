import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Drop two indexes of ends. There were two by port and two that begin with the line, and each change of
    an end wrote all four.
    """

    dependencies = [
        ("vll", "0009_since_when_a_line_is_so"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="vllend",
            name="vll_end_by_port",
        ),
        migrations.AlterField(
            model_name="vllend",
            name="vll",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="ends",
                to="vll.vll",
            ),
        ),
    ]
