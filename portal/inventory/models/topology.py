from django.db import models


class TopologyVersion(models.Model):
    """One row that triggers update when the underlay changes, so that results can be cached by
    its version.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    version = models.UUIDField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="there_is_one_topology")]

    def __str__(self) -> str:
        return str(self.version)
