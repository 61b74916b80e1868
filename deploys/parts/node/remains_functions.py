"""What others left of an etcd, a cluster or a pod network: functions for other facts' scripts."""

from deploys.engine.framed import script

FUNCTIONS = script("node/remains.sh")
