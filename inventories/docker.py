"""GPU servers without Kubernetes: `gpuboot init --docker` writes a file like this; or copy it.

    pyinfra inventories/<your site>.py deploys/standalone.py --dry    # the plan; changes nothing
    pyinfra inventories/<your site>.py deploys/standalone.py

Settings go to group_data/<your site>.py as `gpuboot = {...}`; docs/standalone.md says which.
"""

# Every host with GPUs: it gets Docker with NVIDIA's runtime, dcgm-exporter and node-exporter.
# `gpus` is a promise: a host that shows fewer fails before anything is changed. `address` is where
# the monitoring host reaches it; leave it out when the name is that address.
gpu_hosts = [
    ("gpu1.example.com", {"node_name": "gpu1", "address": "192.0.2.21", "gpus": 8}),
    ("gpu2.example.com", {"node_name": "gpu2", "address": "192.0.2.22", "gpus": 8}),
]

# The one host that runs Prometheus, Alertmanager and Grafana; it may be one of the above.
monitor = [
    ("mon1.example.com", {"node_name": "mon1", "address": "192.0.2.11", "gpus": 0}),
]
