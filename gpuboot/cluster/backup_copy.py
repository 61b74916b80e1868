"""Copies of etcd's backups off the node: where they go, by which program, with which secrets."""

from collections.abc import Mapping

from pydantic import SecretStr

from gpuboot.config import secret_files
from gpuboot.config.secret_files import SecretFile
from gpuboot.config.settings import Settings, SettingsError
from gpuboot.config.settings.backup import S3, Backup

SERVICE = "gpuboot-etcd-backup-copy.service"
_KEY = "/etc/gpuboot/etcd-backup-copy.key"
_KNOWN_HOSTS = "/etc/gpuboot/etcd-backup-copy.known_hosts"
_RCLONE = "/etc/gpuboot/etcd-backup-rclone.conf"
# what is on a host for it that only root reads
SECRETS = (_KEY, _KNOWN_HOSTS, _RCLONE)
_REMOTE = "there"  # of rclone's configuration


def target(settings: Backup) -> str:
    """Where copies go, as rsync and rclone take it; "" for nowhere."""
    if not settings.enabled:
        return ""
    if settings.rsync:
        return settings.rsync.to
    if settings.s3:
        return "/".join(filter(None, (f"{_REMOTE}:{settings.s3.bucket}", settings.s3.prefix)))
    return ""


def shell_settings(settings: Backup) -> dict[str, str]:
    """What the program is told: variable -> value."""
    if not target(settings):
        return {}
    return {
        "copy": "rsync" if settings.rsync else "s3",
        "to": target(settings),
        "port": str(settings.rsync.port if settings.rsync else ""),
        "keep_copies": str(settings.keep_copies),
    }


def packages(settings: Backup) -> tuple[str, ...]:
    """What a node needs for it, as Debian calls it."""
    if not target(settings):
        return ()
    return ("rsync", "openssh-client") if settings.rsync else ("rclone",)


def files(settings: Settings) -> dict[str, SecretFile]:
    """Path on the hosts -> the operator's file whose content is needed there."""
    backup = settings.backup
    if not target(backup):
        return {}
    if backup.rsync:
        key, known_hosts = backup.rsync.key.file, backup.rsync.known_hosts
        return {
            _KEY: SecretFile("backup.rsync.key.file", key, _private_key),
            _KNOWN_HOSTS: SecretFile(
                "backup.rsync.known_hosts", known_hosts, _known_hosts, public=True
            ),
        }
    assert backup.s3
    return {_RCLONE: SecretFile("backup.s3.secret_key.file", backup.s3.secret_key.file)}


def secrets(settings: Settings) -> dict[str, SecretStr]:
    """Path on the hosts -> text that only root reads. Raises `SettingsError`."""
    texts, problems = secret_files.read(files(settings))
    if problems:
        raise SettingsError(problems)
    plain = {path: text.get_secret_value() for path, text in texts.items()}
    if settings.backup.s3 and _RCLONE in plain:
        plain[_RCLONE] = _rclone(settings.backup.s3, plain[_RCLONE])
    return {path: SecretStr(f"{text}\n") for path, text in plain.items()}


def _rclone(bucket: S3, secret: str) -> str:
    """rclone's configuration (rclone.org/s3)."""
    options: Mapping[str, str] = {
        "type": "s3",
        "provider": "Other" if bucket.endpoint else "AWS",
        **({"endpoint": bucket.endpoint} if bucket.endpoint else {}),
        "region": bucket.region,
        "access_key_id": bucket.access_key,
        "secret_access_key": secret,
        "no_check_bucket": "true",  # who may write into a bucket need not be allowed to make one
    }
    lines = [f"{name} = {value}" for name, value in options.items()]
    return "\n".join(["# Written by gpuboot", f"[{_REMOTE}]", *lines])


def _private_key(text: str) -> str:
    return "" if "PRIVATE KEY-----" in text else "it holds no private SSH key"


def _known_hosts(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    good = lines and all(len(line.split()) >= 3 for line in lines)
    return "" if good else "it has no lines as `ssh-keyscan` prints them"
