#!/usr/bin/env python3
"""Prints names in Python files that docs/development.md, Names, forbids; then exits with 1."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def refused_words(page: str) -> tuple[set[str], set[str]]:
    """Words that are no name, and those that stand in no part of a name, from the page's table."""
    section = page.partition("\n## Names\n")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| ")]
    parts = next(line for line in section.splitlines() if line.startswith("In no part"))
    words = {word for row in rows for word in re.findall(r"`(\w+)`", row[3])}
    return words, set(re.findall(r"`(\w+)`", parts))


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Each name that a module binds, with its line, without fields of classes.

    Fields are the keys of JSON that programs read: their names are promises of earlier releases.
    """
    fields = {
        item.target
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if node in fields:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name, node.lineno
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno
            case ast.ClassDef(name=name):
                yield name, node.lineno


def is_refused(name: str, words: set[str], parts: set[str]) -> bool:
    pieces = [piece for piece in name.lower().split("_") if piece]
    if len(pieces) == 1 and not name.startswith("__"):
        return pieces[0] in words
    return not name.startswith("test_") and not parts.isdisjoint(pieces)


def main() -> int:
    words, parts = refused_words((ROOT / "docs/development.md").read_text())
    paths = subprocess.check_output(["git", "ls-files", "*.py"], cwd=ROOT, text=True).split()
    violations = [
        f"{path}:{line}: {name}"
        for path in paths
        for name, line in [
            (Path(path).stem, 1),
            *bound_names(ast.parse((ROOT / path).read_text())),
        ]
        if is_refused(name, words, parts)
    ]
    if violations:
        print(*violations, sep="\n", file=sys.stderr)
        print("names that say no thing: docs/development.md, Names", file=sys.stderr)
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main())
