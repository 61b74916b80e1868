"""What is wrong with the settings of shared GPUs: in themselves, for an inventory, for its GPUs."""

from collections.abc import Iterator, Sequence

from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings, Share
from gpuboot.hosts import driver_mig, gpu_names, gpu_sharing, mig_profiles
from gpuboot.hosts.gpu_models import can_divide, generation
from gpuboot.hosts.mig_profiles import Counts
from gpuboot.hosts.node_state import NodeState

Finding = tuple[str, str]  # cause, remedy
# before Turing an MPS server has 16 clients (k8s-device-plugin v0.19.0,
# cmd/mps-control-daemon/mps/device.go, maxClients)
_OLD_MPS_CLIENTS = 16
_BEFORE_TURING = ("Kepler", "Maxwell", "Pascal", "Volta")


def of_settings(settings: Settings, docker_hosts: bool = False) -> list[Problem]:
    """What excludes each other, and layouts that nobody knows.

    + docker_hosts: they are for Docker hosts, which have no GPU Operator, and MIG alone
    """
    of_share = _of_docker_hosts if docker_hosts else _of_share
    problems = [
        Problem("", f'sharing["{name}"]: {cause}', remedy)
        for name, share in settings.sharing.items()
        for cause, remedy in of_share(share, settings)
    ]
    for name, parts in settings.mig_layouts.items():
        if name.startswith("all-"):
            problems.append(
                Problem(
                    "",
                    f'mig_layouts["{name}"]: names with all- are the MIG manager\'s own',
                    "choose another name",
                )
            )
        named_gpus = [index for part in parts if part.gpus != "all" for index in part.gpus]
        full_parts = [part for part in parts if part.gpus == "all"]
        if (
            len(named_gpus) != len(set(named_gpus))
            or len(full_parts) > (0 if named_gpus else 1)
            or not parts
        ):
            problems.append(
                Problem(
                    "",
                    f'mig_layouts["{name}"] does not name each GPU once',
                    'list every GPU in one part, or have one part with gpus = "all"',
                )
            )
    return problems


def _of_docker_hosts(share: Share, settings: Settings) -> Iterator[Finding]:
    if share.replicas > 1:
        yield (
            "time_slices and mps are for clusters: containers of Docker share a GPU as they are "
            "started, each with --gpus",
            "leave them out; mig divides GPUs on Docker hosts too",
        )
    if share.mig is not None:
        yield from _unknown_layout(share.mig, settings)


def _of_share(share: Share, settings: Settings) -> Iterator[Finding]:
    operator = settings.gpu_operator
    if not operator.enabled:
        yield "GPUs are shared by the GPU Operator", "set gpu_operator.enabled = True"
    if share.time_slices > 1 and share.mps > 1:
        yield "time_slices and mps exclude each other", "keep one of them"
    if share.mps > 1 and share.mig not in (None, gpu_sharing.DISABLED):
        yield "the device plugin shares no MIG instance by MPS", "use time_slices, or leave mig out"
    if share.mps > 1 and operator.mig_strategy == "mixed":
        yield (
            "the device plugin refuses mps under gpu_operator.mig_strategy mixed",
            'use time_slices, or set mig_strategy = "single"',
        )
    if share.replicas > 1 and settings.gate.enabled:
        yield (
            "gate.enabled excludes time_slices and mps: which of the shared GPUs a pod gets cannot "
            "be chosen, so none could be proven",
            "switch the gate off, or do not share these GPUs",
        )
    if share.mig is not None:
        yield from _of_layout(share.mig, settings)


def _of_layout(layout: str, settings: Settings) -> Iterator[Finding]:
    operator = settings.gpu_operator
    if not operator.mig_manager:
        yield "mig needs the MIG manager", "set gpu_operator.mig_manager = True"
    yield from _unknown_layout(layout, settings)
    own_parts = settings.mig_layouts.get(layout)
    if layout == gpu_sharing.DISABLED:
        return
    if operator.mig_strategy == "none":
        yield (
            "under gpu_operator.mig_strategy none no pod gets a MIG instance",
            'set mig_strategy = "single" or "mixed"',
        )
    kinds = {profile for part in own_parts or () for profile in part.instances}
    has_full_gpus = any(not part.instances for part in own_parts or ())
    is_uniform = layout != "all-balanced" and len(kinds) < 2 and not (kinds and has_full_gpus)
    if operator.mig_strategy == "single" and not is_uniform:
        yield (
            "gpu_operator.mig_strategy single needs one profile on all GPUs of a node",
            'set mig_strategy = "mixed"',
        )


def _unknown_layout(layout: str, settings: Settings) -> Iterator[Finding]:
    if layout not in settings.mig_layouts and not mig_profiles.is_layout(layout):
        known_layouts = ", ".join(sorted(settings.mig_layouts)) or "none"
        yield (
            f"{layout} is no MIG layout that gpuboot knows",
            "name all-PROFILE such as all-1g.10gb, all-balanced, all-disabled, or one of "
            f"mig_layouts ({known_layouts})",
        )


def of_inventory(settings: Settings, nodes: Sequence[Node]) -> list[Problem]:
    """Names that no host and no group has."""
    known_names = {name for node in nodes for name in (node.host, node.name, *node.groups)}
    return [
        Problem(
            "",
            f"sharing names {name!r}, which is neither a host nor a group of the inventory",
            f"name one of {', '.join(sorted(known_names))}",
        )
        for name in settings.sharing
        if name not in known_names
    ]


def of_host(node: Node, state: NodeState, settings: Settings) -> Iterator[Finding]:
    """What the GPUs of a machine cannot do of what the settings ask."""
    share = gpu_sharing.of(node, settings)
    if share is None or not node.gpus:
        return
    old = sorted({generation(device).name for device in state.gpu_ids} & set(_BEFORE_TURING))
    if share.mps > _OLD_MPS_CLIENTS and old:
        yield (
            f"mps = {share.mps}, and a GPU of {', '.join(old)} has {_OLD_MPS_CLIENTS} clients",
            f"set mps = {_OLD_MPS_CLIENTS} or less",
        )
    if share.mig is None:
        return
    undividable = [device for device in sorted({*state.gpu_ids}) if _has_no_mig(device, state)]
    for device in undividable:
        yield f"MIG cannot divide {gpu_names.name(device)}", "leave mig out for this host"
    if not undividable:
        yield from _unfit(share.mig, node, state, settings)
        yield from _lacks_in_file(share.mig, state, settings)


def _has_no_mig(device: int, state: NodeState) -> bool:
    """Whether a GPU's driver has no MIG profile for it, or its chip is one that has none."""
    profiles = driver_mig.counts(device, state.mig_profiles)
    return not can_divide(device) if profiles is None else not profiles


def _lacks_in_file(layout: str, state: NodeState, settings: Settings) -> Iterator[Finding]:
    """A layout of the MIG manager's own that gpuboot cannot write down for a GPU.

    With layouts of the settings the MIG manager reads a file that has all layouts, and asks the
    driver for none (`gpuboot.monitoring.charts.sharing_values.mig_manager`).
    """
    names = {share.mig for share in settings.sharing.values() if share.mig}
    names &= set(settings.mig_layouts)
    if not settings.gpu_operator.enabled or not names or layout in {*names, gpu_sharing.DISABLED}:
        return
    for device in sorted({*state.gpu_ids}):
        profiles = driver_mig.counts(device, state.mig_profiles)
        driver_counts = None if profiles is None else mig_profiles.made_of(layout, profiles)
        file_counts = mig_profiles.file_counts(layout, device)
        if (
            file_counts is None
            if profiles is None
            else driver_counts and driver_counts != file_counts
        ):
            yield (
                f"beside {', '.join(sorted(names))} the MIG manager cannot ask the driver what "
                f"{layout} makes of {gpu_names.name(device)}, which gpuboot does not know",
                "write it as a layout of your own: mig_layouts with the instances of each GPU, as "
                "`nvidia-smi mig -lgip` lists them",
            )


def _unfit(layout: str, node: Node, state: NodeState, settings: Settings) -> Iterator[Finding]:
    """+ state: of a machine none of whose GPUs is known to lack MIG"""
    for part in settings.mig_layouts.get(layout, ()):
        for index in () if part.gpus == "all" else part.gpus:
            if index >= node.gpus:
                yield (
                    f"MIG layout {layout} is about GPU {index}, of {node.gpus}",
                    f"name GPUs 0 to {node.gpus - 1}",
                )
    instances_by_gpu = gpu_sharing.per_gpu(
        layout, settings, node.gpus, state.gpu_ids, state.mig_profiles
    )
    is_own_layout = layout in settings.mig_layouts
    partitions = {
        (device, tuple(counts.items()))
        for device, counts in zip(state.gpu_ids, instances_by_gpu, strict=False)
        if counts is not None
    }
    for device, instances in sorted(partitions):
        profiles = driver_mig.counts(device, state.mig_profiles)
        if profiles is None:
            continue  # its driver will say so
        if is_own_layout or layout == gpu_sharing.DISABLED or instances:
            yield from _missing_profiles(device, profiles, dict(instances))
        else:
            yield f"{_device_name(device)} has no MIG layout {layout}", _choices(profiles)


def _missing_profiles(device: int, profiles: Counts, instances: Counts) -> Iterator[Finding]:
    name = _device_name(device)
    if missing := [profile for profile in instances if profile not in profiles]:
        yield f"{name} has no MIG profile {', '.join(missing)}", _choices(profiles)
    elif not driver_mig.fits(device, profiles, instances):
        requested = ", ".join(f"{count} x {profile}" for profile, count in instances.items())
        yield (
            f"{requested} do not fit on one {name}",
            "see what fits beside what: NVIDIA's MIG User Guide, Supported MIG Profiles",
        )


def _device_name(device: int) -> str:
    card = mig_profiles.card(device)
    return card.name if card else gpu_names.name(device)


def _choices(profiles: Counts) -> str:
    choices = ", ".join(f"{name} (at most {count})" for name, count in profiles.items())
    return f"its profiles are {choices}"
