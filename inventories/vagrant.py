"""The two Ubuntu 24.04 virtual machines of the Vagrantfile: `vagrant up`, then

    pyinfra inventories/vagrant.py deploys/site.py

Virtual machines have no NVIDIA GPU unless you pass one through: then set its `gpus`.
"""

_login = {
    "ssh_user": "vagrant",
    "ssh_strict_host_key_checking": "no",  # every `vagrant up` makes new host keys
    "ssh_known_hosts_file": "/dev/null",
}


def _machine(name, address):
    key = f".vagrant/machines/{name}/virtualbox/private_key"
    return name, {**_login, "ssh_hostname": address, "ssh_key": key, "address": address, "gpus": 0}


control_plane = [_machine("cp1", "192.168.56.11")]
workers = [_machine("gpu1", "192.168.56.21")]
