"""The values of the Helm charts, as plain dicts made from settings and version lock.

Sources of the keys: values.yaml of gpu-operator v26.7.0, kube-prometheus-stack 88.5.3 and
dcgm-exporter 4.8.4; tests check every key against the charts' own lists. Fluent Bit's are in
`gpuboot.monitoring.charts.log_values`.
"""
