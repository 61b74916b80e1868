"""flannel, the pod network."""

import ipaddress
from typing import Any

from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.templates import render

# containerd's default registry keeps these apart; crictl wants the whole name.
_IMAGE = "ghcr.io/flannel-io/flannel"
_PLUGIN_IMAGE = "ghcr.io/flannel-io/flannel-cni-plugin"
# what flannel itself writes on every node, from its ConfigMap
CNI_FILE = "/etc/cni/net.d/10-flannel.conflist"
CNI_CONFIG = """\
{
  "name": "cbr0",
  "cniVersion": "0.3.1",
  "plugins": [
    {"type": "flannel", "delegate": {"hairpinMode": true, "isDefaultGateway": true}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
"""


def images(lock: Lock) -> tuple[str, str]:
    """The images of flannel itself and of its CNI plugin."""
    return f"{_IMAGE}:{lock.flannel.version}", f"{_PLUGIN_IMAGE}:{lock.flannel.cni_plugin}"


def manifest(settings: Settings, lock: Lock, api: str, way: str = "") -> str:
    """The manifest for these settings, without a digest.

    + api: host:port by which nodes reach the API server. By its Service, flannel would depend on
      kube-proxy: started before it, as after a boot, it gives up, and each next start is later.
    + way: what stands between nodes and the API servers, of which pods from before do not know
    """
    cluster = settings.cluster
    six = ipaddress.ip_network(cluster.pod_cidr).version == 6
    network: dict[str, Any] = {
        "EnableNFTables": cluster.proxy_mode == "nftables",
        "Backend": {"Type": cluster.flannel_backend},
    }
    if six:
        network |= {"EnableIPv4": False, "EnableIPv6": True, "IPv6Network": cluster.pod_cidr}
    else:
        network |= {"Network": cluster.pod_cidr}
    image, plugin_image = images(lock)
    host, _, port = api.rpartition(":")
    return render(
        "kubernetes/flannel.yaml.j2",
        cni_file=CNI_FILE,
        cni_config=CNI_CONFIG,
        network=network,
        image=image,
        plugin_image=plugin_image,
        api_host=host.strip("[]"),
        api_port=port,
        way=way,
    )
