"""Causes that programs name themselves, by what public reports quote, beside what looks like it."""

from __future__ import annotations

from gpuboot.diagnose.facts import Facts
from tests.unit.diagnose_cases_words import RUNC, crashes, failing_event, not_started, waits
from tests.unit.diagnose_site import NOW, Case, at, cluster, control, event, pod, site, stuck

HOOK = (
    f"{RUNC}error running prestart hook #0: exit status 1, stdout: , stderr: Auto-detected mode as "
    "'legacy' nvidia-container-cli: "
)
PLUGIN = "nvidia-device-plugin-daemonset-x"
NO_DRIVER = "failed to construct resource managers: invalid device discovery strategy"


def plugin(text: str) -> Facts:
    return crashes(text, PLUGIN, "gpu-operator")


def exporter(text: str) -> Facts:
    return crashes(text, "nvidia-dcgm-exporter-y", "gpu-operator")


def prometheus(text: str) -> Facts:
    return crashes(text, "prometheus-x-0", "monitoring")


def flannel(text: str) -> Facts:
    return crashes(text, "kube-flannel-ds-x", "kube-flannel")


def etcd(text: str) -> Facts:
    """A control plane whose API server does not answer, and what its etcd said last."""
    line = f"log\tetcd {at(20, f'stderr F {text}')}"
    return site(
        cp=control("api\t7 000", line, without=["api"]), at=cluster(error="refused", pods=())
    )


def sandbox(text: str) -> Facts:
    item = pod("train-0", **stuck("ContainerCreating"), created=NOW - 900)
    events = (event("train-0", "FailedCreatePodSandBox", text),)
    return site(at=cluster(pods=(item,), events=events))


ROWS: tuple[tuple[str, Facts, Facts, str], ...] = (
    (
        "gpus-not-injected",
        not_started(f"{HOOK}initialization error: load library failed: libnvidia-ml.so.1"),
        not_started(f"{HOOK}requirement error: unsatisfied condition: cuda>=13.1"),
        "load library failed",
    ),
    (
        "gpus-not-injected",
        not_started(f"{HOOK}ldcache error: process /sbin/ldconfig terminated with signal 9"),
        not_started(f"{RUNC}error running prestart hook #0: exit status 1"),
        "ldconfig",
    ),
    (
        "gpus-not-in-container",
        plugin(f"error starting plugins: error getting plugins: {NO_DRIVER}"),
        plugin("error starting plugins: unable to load config: error parsing config file"),
        "invalid device discovery strategy",
    ),
    (
        "gpus-not-in-container",
        exporter("Error: Failed to initialize NVML"),
        exporter("Failed to initialize NVML: Driver/library version mismatch"),
        "Failed to initialize NVML",
    ),
    (
        "gpus-not-in-container",
        not_started(f'{RUNC}exec: "nvidia-smi": executable file not found in $PATH: unknown'),
        not_started(f'{RUNC}exec: "train": executable file not found in $PATH: unknown'),
        "nvidia-smi",
    ),
    (
        "cuda-not-ready",
        crashes("Failed to allocate device vector A (error code system not yet initialized)!"),
        crashes("Failed to allocate device vector A (error code invalid device ordinal)!"),
        "not yet initialized",
    ),
    (
        "gpu-memory-used",
        crashes("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
        crashes("java.lang.OutOfMemoryError: Java heap space"),
        "2.00 GiB",
    ),
    (
        "gpu-architecture",
        crashes("CUDA error: no kernel image is available for execution on the device"),
        crashes("CUDA error: an illegal memory access was encountered"),
        "no kernel image",
    ),
    (
        "dcgm-engine",
        exporter(
            "Error watching fields: This request is serviced by a module of DCGM that is not "
            "currently loaded"
        ),
        exporter("Not collecting DCP metrics: Profiling is not supported for this group of GPUs"),
        "module of DCGM",
    ),
    (
        "etcd-member",
        etcd(
            '{"level":"fatal","msg":"discovery failed","error":"member 9b35 has already been '
            'bootstrapped"}'
        ),
        etcd('{"level":"fatal","msg":"listen tcp 10.0.0.11:2380: bind: address already in use"}'),
        "already been bootstrapped",
    ),
    (
        "shared-memory-full",
        crashes(
            "NCCL WARN Error: failed to extend /dev/shm/nccl-WU to 96 bytes, error: No space "
            "left on device (28)"
        ),
        crashes("write /data/model.bin: No space left on device"),
        "/dev/shm/nccl-WU",
    ),
    (
        "volume-full",
        crashes("write /data/model.bin: No space left on device"),
        crashes("NCCL WARN Call to posix_fallocate failed : No space left on device"),
        "/data/model.bin",
    ),
    (
        "volume-locked",
        prometheus(
            'err="opening storage failed: lock DB directory: resource temporarily unavailable"'
        ),
        prometheus(
            'err="opening storage failed: lock DB directory: open /data/lock: no space left '
            'on device"'
        ),
        "lock DB directory",
    ),
    (
        "volume-not-writable",
        prometheus('err="open /prometheus/queries.active: permission denied"'),
        prometheus('err="open /proc/sys/net/core/somaxconn: permission denied"'),
        "queries.active",
    ),
    (
        "volume-not-writable",
        crashes("GF_PATHS_DATA='/var/lib/grafana' is not writable."),
        crashes("dial unix /run/x.sock: connect: permission denied"),
        "not writable",
    ),
    (
        "rights-missing",
        crashes(
            'nodefeatures is forbidden: User "system:serviceaccount:nfd:nfd" cannot get resource '
            '"nodefeatures"',
            "gpu-operator-node-feature-discovery-worker-x",
            "gpu-operator",
        ),
        crashes('Get "https://10.96.0.1:443/api": dial tcp 10.96.0.1:443: i/o timeout'),
        "forbidden: User",
    ),
    (
        "rights-missing",
        crashes("reflector.go:134] Failed to list *v1.Service: Unauthorized", "coredns-y"),
        crashes("reflector.go:134] Failed to list *v1.Service: EOF", "coredns-y"),
        "Unauthorized",
    ),
    (
        "runs-as-root",
        waits(
            "CreateContainerConfigError", "container has runAsNonRoot and image will run as root"
        ),
        waits("CreateContainerConfigError", 'secret "token" not found'),
        "run as root",
    ),
    (
        "flannel-link",
        flannel(
            "failed to configure interface flannel.1: failed to set interface flannel.1 to UP "
            "state: address already in use"
        ),
        flannel("listen tcp 0.0.0.0:9100: bind: address already in use"),
        "flannel.1",
    ),
    (
        "container-runtime-hangs",
        sandbox('failed to reserve sandbox name "x_0": name "x_0" is reserved for "9d42"'),
        sandbox('failed to setup network: "cni0" already has an IP address different from 10.1'),
        "is reserved for",
    ),
    (
        "cdi-stale",
        waits("CreateContainerError", "failed to generate spec: lstat /dev/nvidia3: no such file"),
        waits("CreateContainerError", "failed to generate spec: lstat /dev/kfd: no such file"),
        "/dev/nvidia3",
    ),
    (
        "config-missing",
        failing_event(
            "FailedMount", 'MountVolume.SetUp failed: secret "stack-admission" not found'
        ),
        failing_event("FailedMount", "hostPath type check failed: /data is not a directory"),
        "stack-admission",
    ),
)
CASES = tuple(Case(*row) for row in ROWS)
