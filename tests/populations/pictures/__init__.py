"""Pictures of the dashboards, drawn of a made-up cluster of recorded GPUs."""
