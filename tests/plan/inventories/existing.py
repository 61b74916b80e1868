"""The site that a run has made already: see tests/plan/living_site.py."""

from tests.plan.living_site import control_plane, workers

__all__ = ["control_plane", "workers"]
