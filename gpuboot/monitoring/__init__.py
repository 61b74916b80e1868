"""Monitoring: Helm values, rules, routes, dashboards, and the objects beside the charts."""
