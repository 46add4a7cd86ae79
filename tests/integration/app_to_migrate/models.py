from django.db import models


class Box(models.Model):
    name = models.CharField(max_length=20)
    weight_g = models.PositiveIntegerField(db_default=0)

    class Meta:
        indexes = [models.Index(fields=["name"], name="app_to_migrate_box_by_name")]
