"""dockerd: its configuration, and its packet filter."""
