"""Judges which dcgm-exporters go with gpuboot, and with which host engines of DCGM."""

import re
from collections.abc import Iterator

from gpuboot.config import support
from gpuboot.config.problems import Problem
from gpuboot.config.version_numbers import parse

# 4.6.1-4.8.4-distroless: the version of DCGM, then the exporter; since 4.9.0 the exporter alone
_TAG = re.compile(r"(?:(?P<dcgm>\d+\.\d+\.\d+)-)?(?P<exporter>\d+\.\d+\.\d+)(?![.\d])")


def lowest() -> tuple[int, ...]:
    """The first exporter whose XID counter can be told from a window.

    Older ones end at their start with the field in their collectors file.
    """
    return parse(support.table("exporter").rows["lowest"])


def old(image: str) -> Iterator[Problem]:
    """The problem with an exporter that is too old. + image: its tag"""
    match = _TAG.match(image)
    if match is not None and parse(match["exporter"]) < lowest():
        yield Problem(
            "",
            f"versions.images.dcgm_exporter is exporter {match['exporter']}, which lacks "
            "DCGM_EXP_XID_ERRORS_TOTAL",
            "use 4.8.3 or newer: our collectors file and the XID alerts need that counter",
        )


def engine_problems(image: str, engine: str) -> Iterator[Problem]:
    """The problem with a host engine that the exporter cannot read. + engine: its version

    The exporter's libdcgm may be newer than the engine that it reads, never older (NVIDIA's GPU
    telemetry guide, "Connecting to an Existing DCGM Agent"). Packages of DCGM 3 have other names.
    """
    rows, match = support.table("exporter").rows, _TAG.match(image)
    major, dcgm = rows["dcgm_major"], match and match["dcgm"]
    lowest_engine = next(
        (
            text
            for since, text in rows["lowest_engine"].items()
            if match and parse(match["exporter"]) >= parse(since)
        ),
        None,
    )
    if parse(engine)[:1] != parse(major):
        yield Problem(
            "",
            f"versions.dcgm.version is {engine}, and gpuboot installs DCGM {major} alone",
            f"leave versions.dcgm out, or name a version of DCGM {major}",
        )
    elif dcgm and parse(dcgm) < parse(engine):
        yield Problem(
            "",
            f"versions.dcgm.version is {engine}, newer than the DCGM {dcgm} in the exporter "
            f"{image}: an exporter may not be older than the engine it reads",
            f"use DCGM {dcgm} or older on the hosts, or a newer exporter",
        )
    elif lowest_engine and parse(engine) < parse(lowest_engine):
        yield Problem(
            "",
            f"versions.dcgm.version is {engine}, and the exporter {image} reads a host engine of "
            f"DCGM {lowest_engine} or newer alone",
            f"set versions.dcgm.version to {lowest_engine} or newer and run before you take that "
            "exporter: engines come first",
        )
