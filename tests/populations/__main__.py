"""`python -m tests.populations` writes docs/hardware.md."""

from tests.populations.document import PAGE, text

PAGE.write_text(text(), encoding="utf-8")
