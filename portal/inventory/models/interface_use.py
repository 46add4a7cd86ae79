from django.db import models


class InterfaceUse(models.Model):
    """The use of one interface, as a side of a link or as a port. An interface has at most one use.

    Only triggers on the tables of links and ports write this table (sql/interface_uses.sql). The table
    contains ids instead of relations, because its rows are created and deleted with the links and ports.
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
