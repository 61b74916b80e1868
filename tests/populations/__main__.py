"""`python -m tests.populations` writes docs/hardware.md; with `--check` it only compares."""

import sys

from tests.populations.document import PAGE, text

if "--check" not in sys.argv:
    PAGE.write_text(text(), encoding="utf-8")
elif PAGE.read_text(encoding="utf-8") != text():
    sys.exit("docs/hardware.md is out of date: run scripts/pages")
