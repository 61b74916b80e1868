"""Packages and their repositories, by apt and dnf."""
