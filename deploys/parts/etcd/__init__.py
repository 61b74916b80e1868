"""etcd of the control planes: its members and backups."""
