from django.db import models


class InterfaceUse(models.Model):
    """One row per interface that is a side of a link or a port: an interface is never both, nor either twice.

    Written by triggers on both tables alone (sql/interface_uses.sql); ids instead of relations, since the
    rows come and go with what they name.
    """

    router_id = models.BigIntegerField()
    interface = models.CharField(max_length=63)
    link_id = models.BigIntegerField(null=True, db_index=True)
    port_id = models.BigIntegerField(null=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["router_id", "interface"], name="an_interface_has_one_use"),
        ]

    def __str__(self) -> str:
        return f"{self.router_id}:{self.interface}"
