"""Rules and configuration of a running Prometheus."""
