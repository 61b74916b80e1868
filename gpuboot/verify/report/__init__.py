"""Reports: one set of findings, written for a terminal, for machines, for CI and for a browser."""

from gpuboot.verify.report.report_model import Report, load
from gpuboot.verify.report.rows import build
from gpuboot.verify.report.writer import new_folder, write

__all__ = ["Report", "build", "load", "new_folder", "write"]
