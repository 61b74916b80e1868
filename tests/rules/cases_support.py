"""Ends of support and of the keys of package repositories."""

from __future__ import annotations

from tests.rules.model import Case, series

_DAY = 86400


def _end(metric: str, days: float, course: str = "x200", **labels: str) -> dict[str, str]:
    """An end so many days after promtool's clock began, at 0; written by two commands."""
    return {
        series(f"gpuboot_{metric}_end_timestamp_seconds", command=command, **labels): (
            f"{days * _DAY:g}{course}"
        )
        for command in ("drift", "outdated")
    }


_R595 = {"key": "driver.version", "version": "595.91.07"}
_MINOR = {"key": "kubernetes.version", "version": "1.36.6"}
CASES = [
    Case("VersionSupportEnding", "of a driver branch in 91 days, while the clock goes on",
         _end("support", 91, **_R595), {40 * 60: [_R595]}, (25 * 60,), step=3600),
    Case("VersionSupportEnding", "of a Kubernetes minor that has ended",
         _end("support", -5, **_MINOR), {3 * 60: [_MINOR]}, step=3600),
    Case("VersionSupportEnding", "of what is no driver and no Kubernetes",
         _end("support", 1, key="containerd.version", version="2.2.9"),
         silent=(5 * 60, 40 * 60), step=3600),
    Case("VersionSupportEnding", "the upgrade begins another branch",
         _end("support", 1, "x5 stale", **_R595)
         | _end("support", 900, key="driver.version", version="620.70.06"),
         {3 * 60: [_R595]}, (7 * 60, 20 * 60), step=3600),
    Case("RepositoryKeyExpiring", "in 31 days, while the clock goes on",
         _end("repository_key", 31, repository="kubernetes", fingerprint="DE15"),
         {40 * 60: [{"repository": "kubernetes"}]}, (25 * 60,), step=3600),
    Case("RepositoryKeyExpiring", "a run fetches the prolonged key",
         _end("repository_key", 20, "x5 34560000x30", repository="kubernetes", fingerprint="DE15"),
         {3 * 60: [{"repository": "kubernetes"}]}, (8 * 60, 30 * 60), step=3600),
    Case("RepositoryKeyExpiring", "a run has fetched the prolonged key, and the others never end",
         _end("repository_key", 400, repository="kubernetes", fingerprint="DE15"),
         silent=(5 * 60, 100 * 60), step=3600),
]  # fmt: skip
