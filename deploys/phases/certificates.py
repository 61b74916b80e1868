"""The control planes' certificates, as part of the phase that makes them."""

from __future__ import annotations

from collections.abc import Sequence

from deploys.operations import certificates
from deploys.run.context import Context


def renewed(context: Context, control_planes: Sequence[str]) -> None:
    """Certificates that expire soon or have expired, before anything needs an API server.

    + control_planes: inventory names of those with a member of etcd
    """
    if context.node.role == "control_plane":
        certificates.renewed(
            name="Renew certificates that expire soon (kubeadm certs renew)",
            days=context.settings.cluster.renew_certificates_days,
            control_planes=control_planes,
            _serial=True,
        )
