"""systemd units."""
