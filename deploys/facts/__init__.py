"""Read-only facts about hosts."""
