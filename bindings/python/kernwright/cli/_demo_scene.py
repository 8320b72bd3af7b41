"""A picture for kernwright demo where no photograph is at hand: spheres on a chequered floor."""

from __future__ import annotations

import numpy as np

HEIGHT, WIDTH = 600, 512
# Centre (x to the right, y up, z into the picture), radius, and how light the sphere is.
_SPHERES = (
    ((-1.25, 0.1, 5.6), 1.1, 150.0),
    ((1.0, -0.2, 4.6), 0.8, 235.0),
    ((0.0, -0.6, 3.6), 0.4, 95.0),
)
_LIGHT = np.array([-0.5, 0.75, -0.45]) / np.linalg.norm([-0.5, 0.75, -0.45])
_FLOOR = -1.0


def scene() -> np.ndarray:
    """Grey levels 0..255 as float32 of whole numbers, (HEIGHT, WIDTH)."""
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    rays = np.stack(
        [(columns - WIDTH / 2) / WIDTH, (HEIGHT / 2 - rows) / WIDTH, np.ones(rows.shape)], axis=-1
    )
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    grey = 190.0 - 110.0 * np.clip(rays[..., 1] * 2, 0, 1)  # the sky
    down = np.minimum(rays[..., 1], -1e-3)
    hit = rays * (_FLOOR / down)[..., None]
    chequered = (np.floor(hit[..., 0] + 0.01) + np.floor(hit[..., 2] + 0.01)) % 2
    shade = np.where(_shadowed(hit), 0.35, 1.0)
    floor = (70.0 + 130.0 * chequered) * shade
    far = np.clip(hit[..., 2] / 30, 0, 1)
    on_floor = rays[..., 1] < -1e-3
    grey = np.where(on_floor, floor * (1 - far) + 190.0 * far, grey)
    nearest = np.full(grey.shape, np.inf)
    for centre, radius, light in _SPHERES:
        along, is_hit = _distance(np.zeros(3), rays, np.array(centre), radius)
        seen = is_hit & (along < nearest)
        normal = (rays * along[..., None] - np.array(centre)) / radius
        lit = np.clip(normal @ _LIGHT, 0, 1)
        mirrored = 2 * lit[..., None] * normal - _LIGHT
        gloss = np.clip(-(mirrored * rays).sum(axis=-1), 0, 1) ** 40
        grey = np.where(seen, light * (0.2 + 0.8 * lit) + 90 * gloss, grey)
        nearest = np.where(seen, along, nearest)
    levels: np.ndarray = np.clip(np.rint(grey), 0, 255).astype(np.float32)
    return levels


def _distance(
    start: np.ndarray, rays: np.ndarray, centre: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """The way along each ray to the sphere, and whether the ray meets it."""
    to_centre = centre - start
    middle = (rays * to_centre).sum(axis=-1)
    inside = radius**2 - ((to_centre**2).sum(axis=-1) - middle**2)
    along = middle - np.sqrt(np.maximum(inside, 0))
    return along, (inside > 0) & (along > 1e-3)


def _shadowed(points: np.ndarray) -> np.ndarray:
    """Where a sphere stands between the point and the light."""
    met = np.zeros(points.shape[:-1], bool)
    for centre, radius, _ in _SPHERES:
        met |= _distance(points, _LIGHT, np.array(centre), radius)[1]
    return met
