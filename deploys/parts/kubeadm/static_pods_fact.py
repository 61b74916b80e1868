"""The control plane of one host: manifests, what kubeadm would write, and what runs."""

from __future__ import annotations

import shlex
from importlib import resources

from typing_extensions import override

from deploys.engine.framed import Framed
from gpuboot.cluster import static_pods

SCRIPT = resources.files("deploys.parts.kubeadm").joinpath("static_pods_fact.sh").read_text()


class StaticPods(Framed[static_pods.StaticPods]):
    """Static pods of a control plane, by one command. kubeadm writes nothing but below /run."""

    @staticmethod
    @override
    def default() -> static_pods.StaticPods:
        return static_pods.StaticPods(error="there is no answer")

    @override
    def command(self, config: str) -> str:
        """`config`: kubeadm's configuration of this host, all documents."""
        return f"config={shlex.quote(config)}\n{SCRIPT}"

    @override
    def process(self, output: list[str]) -> static_pods.StaticPods:
        return static_pods.parse(output)
