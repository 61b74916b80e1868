"""Questions to Prometheus."""
