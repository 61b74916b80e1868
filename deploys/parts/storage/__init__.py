"""StorageClasses, volume claims, and volumes that are folders."""
