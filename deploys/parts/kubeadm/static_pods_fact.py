"""The control plane of one host: manifests, what kubeadm would write, and what runs."""

from deploys.engine.framed import Framed, script
from gpuboot.cluster import static_pods


class StaticPods(Framed[static_pods.StaticPods]):
    """Static pods of a control plane, by one command. kubeadm writes nothing but below /run."""

    parse = static_pods.parse

    @staticmethod
    def default() -> static_pods.StaticPods:
        return static_pods.StaticPods(error="there is no answer")

    def command(self, config: str) -> str:
        """`config`: kubeadm's configuration of this host, all documents."""
        return script("kubeadm/static_pods_fact.sh", config=config)
