"""containerd's configuration, and the CDI specification."""
