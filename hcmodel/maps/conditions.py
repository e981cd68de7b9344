"""Conditions of maps that fit a model otherwise: the near misses that a user can do something about."""

from __future__ import annotations

from hcmodel.maps.map import Obstacle


class Unmet(Obstacle):
    """A condition without which the map would be wrong, or may be; everything else of it fits."""
