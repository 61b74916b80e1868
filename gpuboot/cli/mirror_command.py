"""`gpuboot mirror`: what a site without internet needs, in one folder (docs/mirror.md)."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuboot.cli import runs
from gpuboot.config.exit_codes import FAILED, NOT_WRITTEN
from gpuboot.config.unwritten import is_full, unwritten

if TYPE_CHECKING:
    from gpuboot.mirror.fill import Plan
    from gpuboot.mirror.manifest import Manifest
    from gpuboot.mirror.mirror_requirements import Site

app = typer.Typer(
    no_args_is_help=True,
    help="What a site without internet needs, in one folder: packages, charts, Helm, images.",
)
PROBLEMS = FAILED

Folder = Annotated[Path, typer.Argument(help="The mirror's folder.")]
Checked = Annotated[
    str | None, typer.Argument(help="Whose versions the mirror must have, besides being whole.")
]
Address = Annotated[str, typer.Option("--address", help="Where to listen.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="0: one that is free.")]
Certificate = Annotated[
    Path | None, typer.Option("--certificate", help="PEM file with the chain, for https.")
]
Key = Annotated[Path | None, typer.Option("--key", help="PEM file with its private key.")]
Url = Annotated[str, typer.Argument(help="Where hosts reach the mirror: https://mirror.example")]


@app.command()
def plan(inventory: runs.Inventory, data: runs.Data = None) -> None:
    """Tell what a mirror would hold, and how large it is.

    Reads the publishers' indices, the manifests of images, kubeadm and Helm. Changes nothing.

    Exit code: 0 it can be filled, 1 something is not to be had, 2 could not tell.
    """
    import tempfile

    from gpuboot.mirror import fill

    site = _site(inventory, data)
    with _report_errors(None), tempfile.TemporaryDirectory(prefix="gpuboot-mirror-") as work:
        mirror_plan = fill.plan(fill.client_for(site), site, Path(work), _print_progress)
    print(_text(mirror_plan))
    raise typer.Exit(PROBLEMS if mirror_plan.problems else 0)


@app.command("fill")
def fill_folder(inventory: runs.Inventory, folder: Folder, data: runs.Data = None) -> None:
    """Fetch what is not there yet, and verify all of it. Run it again when it was interrupted.

    Exit code: 0 the mirror is whole, 2 it is not.
    """
    from gpuboot.mirror import fill, manifest

    site = _site(inventory, data)
    with _report_errors(folder):
        mirror_plan, mirror_manifest = fill.fill(
            fill.client_for(site), site, folder, _print_progress
        )
    for note in mirror_plan.notes:
        print(f"note: {note}")
    size = manifest.size_text(manifest.total(mirror_manifest.files))
    print(
        f"{folder} is whole: {len(mirror_manifest.files)} files, {size}; {manifest.NAME} lists them"
    )
    print(f"the site's settings: gpuboot mirror settings {folder} https://mirror.example")


@app.command()
def check(folder: Folder, inventory: Checked = None, data: runs.Data = None) -> None:
    """Verify every file of a mirror by its digest, and its versions by an inventory's settings.

    Exit code: 0 all is right, 1 something is missing, altered or of another version.
    """
    from gpuboot.config.problems import render
    from gpuboot.mirror import content, manifest

    mirror_manifest = _manifest(folder)
    problems = manifest.differences(
        {file.path: content.defect(folder, file) for file in mirror_manifest.files}
    )
    if inventory is not None:
        site = _site(inventory, data)
        mirror, lock = site.settings.mirror, site.lock.model_dump(mode="json")
        problems += manifest.wrong_versions(
            mirror_manifest, mirror.platforms, mirror.architectures, lock
        )
    if problems:
        print(
            render(problems, f"{folder}, filled {mirror_manifest.made}").replace("[inventory] ", "")
        )
    else:
        size = manifest.size_text(manifest.total(mirror_manifest.files))
        print(
            f"{folder} is whole: {len(mirror_manifest.files)} files, {size}, filled "
            f"{mirror_manifest.made}"
        )
    raise typer.Exit(PROBLEMS if problems else 0)


@app.command()
def serve(
    folder: Folder,
    address: Address = "0.0.0.0",
    port: Port = 8080,
    certificate: Certificate = None,
    key: Key = None,
) -> None:
    """Serve a mirror by HTTP, or HTTPS with a certificate: to apt, Helm, containerd and Docker.

    Each request is a line on stdout. For more than a small site let a web server do it.
    """
    from gpuboot.mirror import web

    mirror_manifest = _manifest(folder)
    if (certificate is None) != (key is None):
        runs.stop("--certificate and --key go together\n    remedy: give both, or none for http")
    try:
        server = web.make_server(folder.resolve(), address, port, certificate, key)
    except OSError as error:
        runs.stop(
            f"{address}:{port}: {error}\n    remedy: choose another --port or --address, or "
            "correct the files of the certificate"
        )
    scheme = "https" if certificate else "http"
    url = f"{scheme}://{server.server_name}:{server.server_port}"
    print(f"serving {folder}, filled {mirror_manifest.made}, on {url}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as systemd ends it
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


@app.command()
def settings(folder: Folder, url: Url) -> None:
    """Print the settings of a site whose hosts reach the mirror at URL, for its group_data."""
    from gpuboot.mirror import mirror_layout
    from gpuboot.site.site_files import literal

    mirror_manifest = _manifest(folder)
    paths = [file.path for file in mirror_manifest.files]
    tree = mirror_layout.site_settings(url.rstrip("/"), mirror_manifest.key_sha256, paths)
    print(f'    "mirrors": {literal(tree, 4)},')


def _manifest(folder: Path) -> Manifest:
    from gpuboot.mirror import manifest

    path = folder / manifest.NAME
    remedy = f"gpuboot mirror fill INVENTORY {folder}"
    try:
        return manifest.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        runs.stop(f"{folder} is no mirror that was filled: {error}\n    remedy: {remedy}")
    except manifest.BadManifestError as error:
        runs.stop(f"{path}: {error}\n    remedy: {remedy}")


def _site(inventory: str, data: list[str] | None) -> Site:
    """The settings and hosts of an inventory; no host is connected to."""
    from gpuboot.config.inventory import Node
    from gpuboot.mirror.mirror_requirements import Site
    from gpuboot.site.load_site import load

    if not Path("deploys/site.py").is_file():
        runs.stop(runs.wrong_folder("deploys/site.py"))
    command = [sys.executable, "-m", "deploys.run.offline", inventory, *(data or [])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        runs.stop(result.stderr.rstrip())
    tree = json.loads(result.stdout)
    nodes = tuple(Node(**node) for node in tree["nodes"])
    site_settings, lock = load(tree["gpuboot"], any(node.role == "docker" for node in nodes))
    return Site(site_settings, lock, nodes)


@contextlib.contextmanager
def _report_errors(folder: Path | None) -> Iterator[None]:
    """What goes wrong while fetching, told in words. + folder: of the mirror"""
    from gpuboot.config.settings import SettingsError
    from gpuboot.mirror.client import FetchError
    from gpuboot.mirror.signing import SigningError

    try:
        yield
    except (FetchError, SettingsError, SigningError) as error:
        runs.stop(str(error))
    except OSError as error:
        if folder and (is_full(error) or Path(error.filename or "").is_relative_to(folder)):
            typer.echo(unwritten(folder, error), err=True)
            raise typer.Exit(NOT_WRITTEN) from None
        runs.stop(f"{error}\n    remedy: correct that, and run the same command again")


def _print_progress(line: str) -> None:
    typer.echo(line, err=True)


def _text(mirror_plan: Plan) -> str:
    from gpuboot.config.problems import render
    from gpuboot.mirror.manifest import parts, size_text

    rows = parts(item.file for item in mirror_plan.items)
    lines = [f"{'':<28}{'files':>8}{'size':>12}"]
    lines += [f"{row.name:<28}{row.files:>8}{size_text(row.size):>12}" for row in rows]
    files, size = sum(row.files for row in rows), sum(row.size for row in rows)
    lines.append(f"{'together':<28}{files:>8}{size_text(size):>12}")
    lines += [f"note: {note}" for note in mirror_plan.notes]
    if mirror_plan.problems:
        lines.append(
            render(mirror_plan.problems, "it cannot be filled").replace("[inventory] ", "")
        )
    return "\n".join(lines)
