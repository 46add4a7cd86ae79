from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("depot", "0001_box")]

    operations = [
        migrations.AddField("box", "weight_g", models.PositiveIntegerField(db_default=0)),
    ]
