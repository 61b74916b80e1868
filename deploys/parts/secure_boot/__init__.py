"""Secure Boot, and DKMS's key."""
