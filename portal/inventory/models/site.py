from django.db import models
from django.db.models import Q


class Site(models.Model):
    """A point of presence. Latitude and longitude in degrees (WGS 84), north and east positive."""

    name = models.CharField(max_length=100, unique=True)
    latitude = models.DecimalField(max_digits=8, decimal_places=6, null=True, blank=True)
    longitude = models.DecimalField(max_digits=9, decimal_places=6, null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(latitude__isnull=True) | Q(latitude__range=(-90, 90)),
                name="a_latitude_is_between_the_poles",
            ),
            models.CheckConstraint(
                condition=Q(longitude__isnull=True) | Q(longitude__range=(-180, 180)),
                name="a_longitude_is_within_half_a_turn",
            ),
            models.CheckConstraint(
                condition=Q(latitude__isnull=True, longitude__isnull=True)
                | Q(latitude__isnull=False, longitude__isnull=False),
                name="a_site_has_both_coordinates_or_none",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def coordinates(self) -> tuple[float, float] | None:
        """Return latitude and longitude, or None if unknown."""
        if self.latitude is None or self.longitude is None:
            return None
        return float(self.latitude), float(self.longitude)
