from django.db import models


class TopologyVersion(models.Model):
    """The version of the underlay. Results can be cached by this version.

    The table has one row, which triggers update when the underlay changes.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    version = models.UUIDField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="there_is_one_topology")]

    def __str__(self) -> str:
        return str(self.version)
