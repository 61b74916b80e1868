"""What is common to versions of all programs."""


def parse(version: str) -> tuple[int, ...]:
    """The numbers of a version: `v1.36.6-1.1` gives (1, 36, 6). Raises ValueError without any."""
    head = version.lstrip("v").split("-")[0].split("+")[0].split("~")[0]
    return tuple(int(part) for part in head.split("."))
