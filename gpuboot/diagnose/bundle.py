"""An archive for support: what was read, what it means, the last reports and the settings."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from gpuboot.config import redaction
from gpuboot.diagnose import diagnosis_report
from gpuboot.diagnose.cause_model import Finding
from gpuboot.diagnose.facts import Facts
from gpuboot.diagnose.site_recording import Recording

# of the newest report of each kind
_REPORTS = ("run.json", "verify.json")
_README = """\
What gpuboot read of the site {site} at {when}, for somebody who helps.

diagnosis.txt, diagnosis.json   causes that were found
recording.json                  what hosts and cluster answered, cut down to what causes look at
settings.json                   the settings; secrets are named by their files only
reports/                        the last run and the last verification

Secrets were taken out: nothing of the content of Secrets, environments and arguments was read, and
passwords, tokens and keys in log lines and addresses are ***. Look through it before you send it.
"""


def contents(
    recording: Recording, findings: Sequence[Finding], facts: Facts, when: str
) -> dict[str, str]:
    """The archive's files by their names."""
    mask = redaction.masker()
    files = {
        "README.txt": _README.format(site=recording.site, when=when),
        "diagnosis.txt": diagnosis_report.text(findings, facts, recording.site, recording.seconds)
        + "\n",
        "diagnosis.json": diagnosis_report.document(
            findings, facts, recording.site, recording.seconds
        ),
        "recording.json": recording.to_json(),
        "settings.json": json.dumps(recording.settings, indent=1),
        **dict(_reports(Path(recording.reports or "reports"))),
    }
    return {
        name: _masked_json(text, mask) if name.endswith(".json") else mask(text)
        for name, text in files.items()
    }


def _masked_json(text: str, mask: Callable[[str], str]) -> str:
    return json.dumps(redaction.masked(json.loads(text), mask), indent=1)


def _reports(folder: Path) -> Iterator[tuple[str, str]]:
    """The newest report of each kind; a folder without any is no error."""
    for name in _REPORTS:
        paths = sorted(folder.glob(f"*/{name}"), key=lambda path: path.stat().st_mtime)
        if paths:
            yield f"reports/{name}", paths[-1].read_text(encoding="utf-8")


def write(folder: Path, site: str, files: Mapping[str, str]) -> Path:
    """Pack the files; the archive, which only its owner reads. Raises OSError."""
    name = f"gpuboot-bundle-{site}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    path = folder / f"{name}.tar.gz"
    path.touch(mode=0o600, exist_ok=False)
    try:
        with tarfile.open(path, "w:gz") as archive:
            for file, text in files.items():
                data = text.encode()
                entry = tarfile.TarInfo(f"{name}/{file}")
                entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
                archive.addfile(entry, io.BytesIO(data))
    except OSError:
        path.unlink()
        raise
    return path
