"""Settings of the example site: how to log in, and what differs from the defaults."""

ssh_user = "ubuntu"  # a user that may sudo without a password
ssh_strict_host_key_checking = "yes"  # host keys come from your known_hosts, not from the wire

gpuboot = {
    "cluster": {"name": "example"},
    "monitoring": {"retention": "30d"},
}
