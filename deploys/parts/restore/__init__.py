"""A restore of etcd from a backup."""
