"""Real servers: `gpuboot init` writes a file like this; or copy it and change the names.

    pyinfra inventories/<your site>.py deploys/site.py --dry    # the plan; changes nothing
    pyinfra inventories/<your site>.py deploys/site.py

Settings of the site go to group_data/<your site>.py as `gpuboot = {...}`; all of them, with their
defaults, are listed in docs/settings.md. What a person must give stands here.
"""

# One control-plane node, or an odd number of them.
# `address` is the node's IP address in the cluster; leave it out when the name is that address
# or when the address of the default route is right.
control_plane = [
    ("cp1.example.com", {"node_name": "cp1", "address": "192.0.2.11"}),
]

# Every other node. `gpus` is a promise: a node that shows fewer fails before anything is changed,
# and the verification proves exactly this number, GPU by GPU. Nodes without GPUs have none.
workers = [
    ("gpu1.example.com", {"node_name": "gpu1", "address": "192.0.2.21", "gpus": 8}),
    ("gpu2.example.com", {"node_name": "gpu2", "address": "192.0.2.22", "gpus": 8}),
    ("cpu1.example.com", {"node_name": "cpu1", "address": "192.0.2.31"}),
]
