"""The control planes' certificates, as part of the phase that makes them."""

from __future__ import annotations

from deploys.operations import certificates
from deploys.run.context import Context


def renewed(context: Context) -> None:
    """Certificates that expire soon or have expired, before anything needs an API server."""
    if context.node.role == "control_plane":
        certificates.renewed(
            name="Renew certificates that expire soon (kubeadm certs renew)",
            days=context.settings.cluster.renew_certificates_days,
            control_planes=[item.host for item in context.nodes if item.role == "control_plane"],
            _serial=True,
        )
