"""What real machines report, kind by kind, and what the product makes of it."""
