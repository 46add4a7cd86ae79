from django.db import models


class Site(models.Model):
    """A point of presence."""

    name = models.CharField(max_length=100, unique=True)

    def __str__(self) -> str:
        return self.name
