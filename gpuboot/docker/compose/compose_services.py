"""The services of the compose project: what each may do, reads, keeps and listens on.

All are in the host's network. A port that Docker publishes passes by the host's firewall, Docker's
own networks may be the site's elsewhere, and names resolve as they do on the host.
"""

from gpuboot.cluster.backup import METRICS_FOLDER
from gpuboot.config.compose_images import image
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.settings.standalone import Service
from gpuboot.config.versions import Lock
from gpuboot.docker.compose import grafana
from gpuboot.docker.compose.compose_files import FOLDER, Object, bind_mount
from gpuboot.monitoring.charts.stack_volumes import usable_size

NOBODY_UID = 65534  # as Prometheus' images run
GRAFANA = 472  # as Grafana's image runs
PROMETHEUS = "/etc/prometheus"  # where Prometheus sees its files
COLLECTORS = "/etc/gpuboot/collectors.csv"
SECRETS = "/run/gpuboot-secrets"  # where Alertmanager sees its own
PASSWORD = "/run/secrets/admin-password"


def _service(key: str, settings: Settings, lock: Lock, **options: object) -> Object:
    return {
        "image": image(key, settings, lock),
        "network_mode": "host",
        "restart": "unless-stopped",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "logging": {"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}},
        **options,
    }


def _health(*command: str) -> Object:
    return {"test": ["CMD", *command], "interval": "30s", "timeout": "10s", "retries": 3}


def dcgm_exporter(node: Node, settings: Settings, lock: Lock) -> Object:
    """The GPU metrics.

    SYS_ADMIN is what profiling fields take. No check of its health: the image has no program that
    could ask, and Prometheus' `up` does.
    """
    exporter, port = settings.exporter, settings.standalone.ports["exporter"]
    address = host_port(node.address, port)
    command = ["-f", COLLECTORS, "-c", str(exporter.interval_ms), "-a", address]
    if settings.engine:
        command += ["-r", settings.engine]
    return _service(
        "dcgm_exporter",
        settings,
        lock,
        runtime="nvidia",
        cap_add=["SYS_ADMIN"],
        environment={
            "NVIDIA_VISIBLE_DEVICES": "all",
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        },
        command=[*command, *exporter.arguments],
        volumes=[bind_mount(f"{FOLDER}/exporter", "/etc/gpuboot")],
    )


def node_exporter(node: Node, settings: Settings, lock: Lock, nvswitches: bool) -> Object:
    """The host's metrics, seen from the host's own name spaces.

    + nvswitches: a timer leaves their errors for it
    """
    address = host_port(node.address, settings.standalone.ports["node_exporter"])
    textfile_option = f"--collector.textfile.directory=/host{METRICS_FOLDER}"
    return _service(
        "node_exporter",
        settings,
        lock,
        pid="host",
        read_only=True,
        user=f"{NOBODY_UID}:{NOBODY_UID}",
        command=[
            f"--web.listen-address={address}",
            "--path.rootfs=/host",
            "--collector.filesystem.mount-points-exclude="
            "^/(dev|proc|run|sys|var/lib/(docker|containerd))($|/)",
            *([textfile_option] if settings.dcgm == "host" or nvswitches else []),
        ],
        volumes=[bind_mount("/", "/host", propagation="rslave")],
    )


def prometheus_server(settings: Settings, lock: Lock) -> Object:
    """Prometheus: its configuration is read again on SIGHUP, targets when their files change."""
    monitoring, standalone = settings.monitoring, settings.standalone
    # data are always kept here, in a folder: nothing but Prometheus itself holds it to a size
    size = usable_size(monitoring.storage.prometheus_size)
    command = [
        f"--config.file={PROMETHEUS}/prometheus.yml",
        "--storage.tsdb.path=/prometheus",
        f"--storage.tsdb.retention.time={monitoring.retention}",
        f"--storage.tsdb.retention.size={size}",
        f"--web.listen-address={host_port(standalone.bind, standalone.ports['prometheus'])}",
    ]
    return _service(
        "prometheus",
        settings,
        lock,
        user=f"{NOBODY_UID}:{NOBODY_UID}",
        read_only=True,
        command=command,
        volumes=[
            bind_mount(f"{FOLDER}/prometheus", PROMETHEUS),
            bind_mount(f"{FOLDER}/data/prometheus", "/prometheus", read_only=False),
        ],
        healthcheck=_health(
            "promtool", "check", "healthy", f"--url={local_url(settings, 'prometheus')}"
        ),
    )


def alertmanager(settings: Settings, lock: Lock) -> Object:
    """Alertmanager, alone: there is no cluster of them."""
    standalone = settings.standalone
    return _service(
        "alertmanager",
        settings,
        lock,
        user=f"{NOBODY_UID}:{NOBODY_UID}",
        read_only=True,
        command=[
            "--config.file=/etc/alertmanager/alertmanager.yml",
            "--storage.path=/alertmanager",
            "--cluster.listen-address=",
            f"--web.listen-address={host_port(standalone.bind, standalone.ports['alertmanager'])}",
        ],
        volumes=[
            bind_mount(f"{FOLDER}/alertmanager", "/etc/alertmanager"),
            bind_mount(f"{FOLDER}/secrets/alertmanager", SECRETS),
            bind_mount(f"{FOLDER}/data/alertmanager", "/alertmanager", read_only=False),
        ],
        healthcheck=_health(
            "amtool", "config", "show", f"--alertmanager.url={local_url(settings, 'alertmanager')}"
        ),
    )


def grafana_server(settings: Settings, lock: Lock) -> Object:
    """Grafana. Its password comes from a file, and it asks nobody outside for news."""
    standalone = settings.standalone
    return _service(
        "grafana",
        settings,
        lock,
        user=f"{GRAFANA}:{GRAFANA}",
        read_only=True,
        tmpfs=["/tmp"],
        environment={
            "GF_SERVER_HTTP_ADDR": standalone.bind,
            "GF_SERVER_HTTP_PORT": str(standalone.ports["grafana"]),
            "GF_SECURITY_ADMIN_USER": "admin",
            "GF_SECURITY_ADMIN_PASSWORD__FILE": PASSWORD,
            "GF_ANALYTICS_REPORTING_ENABLED": "false",
            "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
            "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
            "GF_USERS_ALLOW_SIGN_UP": "false",
        },
        volumes=[
            bind_mount(f"{FOLDER}/grafana", grafana.FOLDER),
            bind_mount(f"{FOLDER}/secrets/grafana", "/run/secrets"),
            bind_mount(f"{FOLDER}/data/grafana", "/var/lib/grafana", read_only=False),
        ],
        healthcheck=_health(
            "wget", "-q", "--spider", f"{local_url(settings, 'grafana')}/api/health"
        ),
    )


def host_port(address: str, port: int) -> str:
    """An address and a port, as programs of Go take them."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def local_address(settings: Settings, service: Service) -> str:
    """The address of a page on the monitoring host, for that host itself, as `host:port`.

    + service: prometheus, alertmanager or grafana
    """
    standalone = settings.standalone
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(standalone.bind, standalone.bind)
    return host_port(address, standalone.ports[service])


def local_url(settings: Settings, service: Service) -> str:
    """The URL of such a page."""
    return f"http://{local_address(settings, service)}"
