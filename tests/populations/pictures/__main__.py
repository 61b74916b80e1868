"""`python -m tests.populations.pictures` draws docs/pictures/gpu-*.png anew.

It takes chromium and pngquant.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from lab.dashboard_preview.draw import draw
from lab.dashboard_preview.page import WIDTH
from tests.populations.pictures.prometheus import END, SETTINGS, make, prometheus

HOURS = 3
SMALLER = ("pngquant", "48", "--speed", "1", "--strip", "--force", "--ext", ".png")


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("docs/pictures"),
    width: Annotated[int, typer.Option(help="Width of the pictures, in pixels.")] = WIDTH,
) -> None:
    """Draw the six dashboards of a made-up cluster."""
    with tempfile.TemporaryDirectory() as work:
        data = Path(work) / "data"
        make(data)
        with prometheus(data) as url:
            source = "a made-up cluster of recorded GPUs"
            for path in list(draw(SETTINGS, url, out, HOURS, END, source, width)):
                print(path)
                if path.suffix == ".html":
                    path.unlink()
                else:
                    subprocess.run([*SMALLER, str(path)], check=True)


if __name__ == "__main__":
    typer.run(main)
