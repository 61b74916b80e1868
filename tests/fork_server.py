"""`pyinfra` as a fork of a process that has imported everything: without the second that takes.

As a module it is that process: it reads one request a line, and answers with an exit code.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 120
_PACKAGES = ("engine", "parts", "run", "phases")


def run_pyinfra(
    arguments: Sequence[str],
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    answers: str = "",
    merged: bool = False,
) -> subprocess.CompletedProcess[str]:
    """`pyinfra ARGUMENTS` in this folder, without a terminal.

    + environment: laid over this process's own
    + answers: its standard input
    + merged: both streams in one, as they came
    """
    with tempfile.TemporaryDirectory() as work:
        names = ("stdin", "output", "output") if merged else ("stdin", "stdout", "stderr")
        files = [Path(work) / name for name in names]
        files[0].write_text(answers)
        variables = {**os.environ, **(environment or {})}
        code = _request([str(file) for file in files], str(folder), variables, [*arguments])
        texts = [file.read_text() for file in dict.fromkeys(files[1:])]
        return subprocess.CompletedProcess(["pyinfra", *arguments], code, *texts)


def _request(*request: Any) -> int:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    if not select.select([server.stdout], [], [], LIMIT_S)[0]:
        server.kill()
        _server.cache_clear()
        raise TimeoutError(f"pyinfra has not ended within {LIMIT_S} s: {request}")
    return int(server.stdout.readline())


@cache
def _server() -> subprocess.Popen[str]:
    """The process that forks; it ends with its standard input, that is with the tests."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fork_server"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _serve() -> None:
    from pyinfra_cli.main import main  # its import patches what those below use

    for name in _PACKAGES:
        package = importlib.import_module(f"deploys.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _run(main, *json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(
    main: Any, files: list[str], folder: str, environment: dict[str, str], arguments: list[str]
) -> NoReturn:
    code = 70
    try:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(":"))
        for number, (name, mode) in enumerate(zip(files, ("r", "a", "a"), strict=True)):
            with open(name, mode) as file:
                os.dup2(file.fileno(), number)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        sys.argv = ["pyinfra", *arguments]
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
