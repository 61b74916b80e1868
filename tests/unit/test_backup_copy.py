"""Copies of etcd's backups off the node: what goes where, what is kept there, and what fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuboot.cluster import backup, backup_copy
from gpuboot.config.settings import Settings, SettingsError, parse_settings
from gpuboot.site import local_files
from tests.unit.test_backup import Machine

STORE = "backup@store.example:/srv/etcd"
RSYNC = {"to": STORE, "port": 2222, "key": {"file": "key"}, "known_hosts": "known_hosts"}
S3 = {
    "bucket": "etcd",
    "prefix": "clusters/prod",
    "endpoint": "https://s3.example:9000",
    "region": "eu-1",
    "access_key": "AKIA",
    "secret_key": {"file": "secret"},
}
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nHIDDEN\n-----END OPENSSH PRIVATE KEY-----\n"
# what is there, and which files a comparison finds different, are told by files
PROGRAM = """\
#!/bin/sh
echo "${0##*/} $*" >>"$CALLS"
case "$*" in
  *--list-only*) sed 's#.*#-rw-------  170 2026/11/22 23:00:00 &/about.json#' "$THERE" ;;
  *lsf*) sed 's#$#/about.json#' "$THERE" ;;
  *-rcn*) cat "$DIFFERS"; : >"$DIFFERS" ;;
  *check*) [ ! -s "$DIFFERS" ] || { : >"$DIFFERS"; exit 1; } ;;
esac
case "$*" in *"$BROKEN"*) [ -z "$BROKEN" ] || { echo "connection refused" >&2; exit 10; } ;; esac
"""
# no unit has failed
SYSTEMCTL = """\
#!/bin/sh
[ "$1" != show ] || { echo dead; exit 0; }
echo "systemctl $*" >>"$CALLS"
exit "$SYSTEMCTL"
"""
OLD, NEW = "20260101T000000Z-timer", "20260102T000000Z-timer"


class Copying(Machine):
    """A control-plane node with two backups. The other place has what the file `there` says."""

    def __init__(self, root: Path, **settings: object) -> None:
        super().__init__(root)
        self.remote, self.differs = root / "there", root / "differs"
        for file in (self.remote, self.differs, self.calls):
            file.write_text("")
        for name in ("rsync", "rclone"):
            self.program(name, PROGRAM)
        self.program("systemctl", SYSTEMCTL)
        self.configure(**settings)
        for number, name in enumerate((OLD, NEW), start=1):
            (self.folder / name).mkdir(parents=True)
            (self.folder / name / "about.json").write_text(f'{{"taken":{number}000,"reason":"x"}}')

    def copy(self, broken: str = "") -> tuple[int, str]:
        self.calls.write_text("")
        environment = {"THERE": str(self.remote), "DIFFERS": str(self.differs), "BROKEN": broken}
        result = self.run("copy", **environment)
        return result.returncode, result.stderr

    @property
    def logged_calls(self) -> list[str]:
        """Without folders that differ from test to test."""
        return [
            line.replace(f"{self.folder}/", "LOCAL/") for line in self.calls.read_text().split("\n")
        ][:-1]

    @property
    def copied(self) -> str:
        file = self.folder / ".copied"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def node(tmp_path: Path) -> Copying:
    return Copying(tmp_path, rsync=RSYNC)


def test_what_is_missing_is_copied_the_newest_first_and_whole_ones_are_told_by_their_last_file(
    node: Copying,
) -> None:
    assert node.copy() == (0, "")
    store = f"{STORE}/node1"
    transfers = [line for line in node.logged_calls if "LOCAL/2" in line]
    assert transfers == [
        line
        for name in (NEW, OLD)
        for line in (
            f"rsync -rtp --exclude=/about.json LOCAL/{name}/ {store}/{name}/",
            f"rsync -tp LOCAL/{name}/about.json {store}/{name}/",
        )
    ] + [f"rsync -rcn --out-format=%n LOCAL/{NEW}/ {store}/{NEW}/"]
    assert node.copied == f"{NEW}\t2000\t{STORE}\n"
    metric = node.metrics / f"{backup.COPY_METRIC}.prom"
    assert metric.read_text().endswith(f'{backup.COPY_METRIC}{{node="node1"}} 2000\n')
    node.remote.write_text(f"{OLD}\n{NEW}\n")
    assert node.copy() == (0, "")
    assert not [line for line in node.logged_calls if line.startswith("rsync -rtp")]


def test_older_copies_than_are_kept_are_deleted_and_nothing_else(node: Copying) -> None:
    node.configure(rsync=RSYNC, keep_copies=2)
    older = [f"2025010{day}T000000Z-timer" for day in (1, 2)]
    node.remote.write_text("\n".join([*older, OLD, NEW]) + "\n")
    assert node.copy() == (0, "")
    dropped = [line for line in node.logged_calls if "--delete" in line]
    assert dropped == [
        f"rsync -r --delete --include=/{name}/*** --exclude=* LOCAL/.empty/ {STORE}/node1/"
        for name in reversed(older)
    ]
    assert [path.name for path in node.backups] == [OLD, NEW]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("--list-only", f"{STORE} cannot be read"),
        ("-rtp", f"{NEW} is not copied to {STORE}/node1"),
        ("-tp", f"{NEW} is not copied to {STORE}/node1"),
        ("-rcn", f"the copy of {NEW} in {STORE}/node1 is not what is here"),
    ],
)
def test_a_copy_that_fails_says_so_and_leaves_the_local_ones(
    node: Copying, broken: str, message: str
) -> None:
    code, text = node.copy(broken)
    assert code == 1
    assert message in text
    assert "connection refused" in text
    assert node.copied == ""
    assert not list(node.metrics.glob("*")) if node.metrics.exists() else True
    assert [path.name for path in node.backups] == [OLD, NEW]


def test_a_copy_that_is_not_the_same_is_made_anew(node: Copying) -> None:
    node.remote.write_text(f"{OLD}\n{NEW}\n")
    node.differs.write_text("etcd.db\n")
    assert node.copy() == (0, "")
    assert [line for line in node.logged_calls if "--delete" in line]
    assert [line for line in node.logged_calls if line.startswith("rsync -rtp") and NEW in line]


def test_a_bucket_is_asked_by_rclone_whose_secret_is_on_no_command_line(tmp_path: Path) -> None:
    node = Copying(tmp_path, s3=S3, keep_copies=2)
    node.remote.write_text("20250101T000000Z-timer\n20250102T000000Z-timer\n" + OLD + "\n")
    assert node.copy() == (0, "")
    config = f"--config {tmp_path}/etc/gpuboot/etcd-backup-rclone.conf"
    assert all(config in line for line in node.logged_calls)
    remote = "there:etcd/clusters/prod/node1"
    calls = [line.partition("--contimeout 15s ")[2] for line in node.logged_calls]
    listing = f"lsf -R --files-only --include /*/about.json {remote}"
    assert calls == [
        listing,
        f"copy --exclude /about.json LOCAL/{NEW} {remote}/{NEW}",
        f"copy --include /about.json LOCAL/{NEW} {remote}/{NEW}",
        f"check --one-way --download LOCAL/{NEW} {remote}/{NEW}",
        listing,
        f"purge {remote}/20250101T000000Z-timer",
    ]
    node.differs.write_text("etcd.db")
    assert node.copy()[0] == 0
    assert any(f"purge {remote}/{NEW}" in line for line in node.logged_calls)


@pytest.mark.parametrize("systemctl", ["0", "1"])
def test_each_backup_begins_a_copy_that_it_does_not_wait_for(node: Copying, systemctl: str) -> None:
    result = node.run("upgrade", SYSTEMCTL=systemctl)
    assert result.returncode == 0
    assert f"systemctl start --no-block {backup_copy.SERVICE}" in node.logged_calls
    assert ("no copy off this node was begun" in result.stderr) is (systemctl == "1")
    node.configure()
    node.calls.write_text("")
    assert node.run("removal").returncode == 0
    assert not [line for line in node.logged_calls if "systemctl" in line]


def site(folder: Path, **backup: object) -> Settings:
    for name, text in (
        ("key", KEY),
        ("known_hosts", "store ssh-ed25519 AAAA\n"),
        ("secret", "s3cr"),
    ):
        (folder / name).write_text(text)
    return parse_settings({"backup": backup})


def test_secrets_are_files_that_only_root_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = site(tmp_path, rsync=RSYNC)
    texts = {path: text.get_secret_value() for path, text in backup_copy.secrets(settings).items()}
    assert texts == {
        "/etc/gpuboot/etcd-backup-copy.key": KEY,
        "/etc/gpuboot/etcd-backup-copy.known_hosts": "store ssh-ed25519 AAAA\n",
    }
    public = backup.files(settings.backup, "cp1")
    assert "port=2222\n" in public["/etc/gpuboot/etcd-backup.conf"]
    settings = site(tmp_path, s3=S3)
    (path, text), = backup_copy.secrets(settings).items()  # fmt: skip
    assert path == "/etc/gpuboot/etcd-backup-rclone.conf"
    for line in ("provider = Other", "endpoint = https://s3.example:9000", "region = eu-1",
                 "access_key_id = AKIA", "secret_access_key = s3cr"):  # fmt: skip
        assert f"{line}\n" in text.get_secret_value()
    public = backup.files(settings.backup, "cp1")
    assert "s3cr" not in "".join(public.values())
    assert f"ExecStart={backup.PROGRAM} copy\n" in public[backup.FILES[-1]]
    amazon = {"bucket": "etcd", "access_key": "AKIA", "secret_key": {"file": "secret"}}
    (text,) = backup_copy.secrets(site(tmp_path, s3=amazon)).values()
    assert "provider = AWS\nregion = us-east-1\n" in text.get_secret_value()


def test_without_a_place_there_is_nothing_of_it() -> None:
    settings = parse_settings({})
    assert backup_copy.target(settings.backup) == ""
    assert backup_copy.packages(settings.backup) == ()
    assert backup_copy.secrets(settings) == {}
    assert backup.FILES[-1] not in backup.files(settings.backup, "cp1")
    off = parse_settings({"backup": {"enabled": False, "rsync": RSYNC}})
    assert backup_copy.target(off.backup) == ""
    assert backup_copy.files(off) == {}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("key", "ssh-ed25519 AAAA", "backup.rsync.key.file: key: it holds no private SSH key"),
        ("known_hosts", "store", "backup.rsync.known_hosts: known_hosts: it has no lines"),
        ("key", "", "backup.rsync.key.file: key: it is empty"),
    ],
)
def test_files_that_cannot_be_used_are_named_before_anything_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = site(tmp_path, rsync=RSYNC)
    assert local_files.problems(settings) == []
    (tmp_path / name).write_text(content)
    (problem,) = local_files.problems(settings)
    assert message in problem.cause
    (tmp_path / "key").chmod(0o644)
    assert local_files.warnings(settings) == [
        "backup.rsync.key.file: others can read key; remedy: chmod 600 key"
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rsync": RSYNC, "s3": S3}, "take either rsync or s3"),
        ({"rsync": RSYNC | {"to": "store.example:/srv"}}, "backup.rsync.to: takes USER@HOST"),
        ({"rsync": RSYNC | {"to": "-oProxyCommand=x@h:/srv"}}, "backup.rsync.to: takes USER@HOST"),
        ({"rsync": RSYNC | {"to": "u@h:/srv/../etc"}}, "backup.rsync.to: takes USER@HOST"),
        ({"s3": S3 | {"bucket": "ETCD"}}, "backup.s3.bucket: takes a bucket's name"),
        ({"s3": S3 | {"prefix": "/x"}}, "backup.s3.prefix: takes a path"),
        ({"s3": S3 | {"access_key": "a\nb"}}, "backup.s3.access_key: takes one word"),
        ({"keep_copies": 0}, "backup.keep_copies"),
    ],
)
def test_wrong_settings_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_settings({"backup": options})
    assert message in str(error.value)
