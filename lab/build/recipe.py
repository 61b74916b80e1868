"""How one folder of the store is made: a recipe, and what it works with."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.build.store import digest, folder, stored
from lab.state import LabError, cache_dir

TAIL = 30  # lines of a failed build's log that are shown


@dataclass(frozen=True)
class BuildContext:
    """Where a recipe works: `out` becomes the folder in the store, `work` is thrown away.

    `needed` holds the finished folders of the recipes that this one needs, by name.
    """

    out: Path
    work: Path
    log: Path
    needed: Mapping[str, Path]

    def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Run a command; what it says goes to the log only.

        Raises `LabError` with the end of the log when it fails. When the caller is interrupted
        the command and its children are ended first.
        """
        with self.log.open("a") as stream:
            stream.write(f"$ {' '.join(command)}\n")
            stream.flush()
            status = self._wait(command, cwd or self.work, env, stream.fileno())
        if status != 0:
            lines = self.log.read_text(errors="replace").splitlines()[-TAIL:]
            text = "\n".join(f"    {line}" for line in lines)
            name = " ".join(command[:3])
            raise LabError(f"`{name} …` failed with status {status}; {self.log} ends:\n{text}")

    def _wait(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str] | None, output: int
    ) -> int:
        # A session of its own: Ctrl-C reaches this process alone, which then ends all of them.
        process = subprocess.Popen(
            ["nice", "-n", "5", *command],
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise


@dataclass(frozen=True)
class Recipe:
    """A folder of the store.

    `outputs` maps names of programs (or other files) to paths in that folder. `inputs` are all
    that decides the content; files and folders count by what is in them. `needs` names recipes
    that have to be made before. `seconds` is what it takes on two cores with nothing cached.
    """

    name: str
    outputs: Mapping[str, str]
    inputs: Sequence[str | bytes | Path]
    make: Callable[[BuildContext], None]
    needs: tuple[str, ...] = ()
    seconds: float = field(default=5.0, compare=False)

    def folder_name(self, needed: Mapping[str, Path]) -> str:
        """`<name>-<key>`; the key changes with the folders it needs as well."""
        ready = [needed[name].name for name in self.needs]
        return f"{self.name}-{digest(*self.inputs, *sorted(self.outputs), *ready)}"


def is_made(recipe: Recipe, needed: Mapping[str, Path]) -> bool:
    """Whether the recipe's folder is in the store."""
    return folder(recipe.folder_name(needed)).exists()


def make(recipe: Recipe, needed: Mapping[str, Path]) -> Path:
    """The recipe's folder in the store, made if it is not there.

    Raises `LabError` with the end of the log when a command fails or an output is missing.
    """
    log = cache_dir() / "logs" / f"{recipe.name}.log"

    def work(out: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
        with tempfile.TemporaryDirectory(prefix=f"gpuboot-{recipe.name}-") as scratch:
            recipe.make(BuildContext(out, Path(scratch), log, needed))
        missing = [path for path in recipe.outputs.values() if not (out / path).exists()]
        if missing:
            raise LabError(f"{recipe.name} was made without {', '.join(missing)}; see {log}")

    return stored(recipe.folder_name(needed), work)
