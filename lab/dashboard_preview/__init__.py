"""Pictures of the dashboards for people, since the lab has no Grafana."""
