"""What the package manager would do with a run's packages."""

import shlex
from collections.abc import Mapping, Sequence

from deploys.engine.framed import Framed, script
from deploys.parts.packages import apt, apt_private
from gpuboot.hosts import package_rehearsal
from gpuboot.hosts.apt_sources import Edit
from gpuboot.hosts.package_rehearsal import Rehearsal

# of its own: a run on the host may try its sources at the same time
FOLDER = "/run/gpuboot/rehearsal"
_OPTIONS = apt_private.OPTIONS.replace(apt_private.FOLDER, FOLDER)
# who does not answer is told of, not waited for
_HASTE = """
Acquire::Retries "1";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
"""


# beside those that the host has
_CREDENTIALS = """\
mkdir -m 0700 "$copy/auth"
eval "$(apt-config shell parts Dir::Etc::netrcparts/d)"
for file in "$parts"*; do [ ! -f "$file" ] || cp -p "$file" "$copy/auth/"; done
(umask 077; cat >"$copy/auth/95gpuboot-proxy.conf")
printf 'Dir::Etc::netrcparts "%s/auth";\\n' "$copy" >>"$copy/apt.conf\""""


class AptRehearsal(Framed[Rehearsal]):
    """The transaction that apt would make of packages, with the sources that are to be there.

    Packages of the sources that a run brings are looked up anew; others by the indices that the
    host has, and anew where these are not enough.
    """

    parse = package_rehearsal.parse

    @staticmethod
    def default() -> Rehearsal:
        return Rehearsal(error="the host did not answer")

    def command(
        self,
        packages: Mapping[str, str],
        sources: Mapping[str, str],
        keys: Mapping[str, str],
        edits: Sequence[Edit] = (),
        configuration: str = "",
        credentials: bool = False,
    ) -> str:
        """`packages`: name -> version or its pattern; `sources`: path of a file of sources -> its
        text; `keys`: path of a key that they name -> its address; `edits`: lines that go from
        other files; `configuration`: of apt, which the run brings; `credentials`: those that it
        brings come by `_stdin`, as apt_auth.conf(5) has them."""
        prepare = apt_private.prepare(sources, edits, keys=list(keys))
        prepare = prepare.replace(apt_private.FOLDER, FOLDER)
        settings = shlex.quote(f"{configuration}{_HASTE}")
        texts = {path: _own_keys(text, keys) for path, text in sources.items()}
        return "\n".join(
            [
                f"copy={FOLDER} options={shlex.quote(_OPTIONS)}",
                f"pins={shlex.quote(' '.join(apt.pins(packages)))}",
                apt.LAY_PINS,
                f'prepare() {{\n{prepare} && printf %s {settings} >>"$copy/apt.conf"\n}}',
                _function("put_planned", [_planned(*item) for item in texts.items()]),
                _function("put_keys", [_key(*item) for item in keys.items()]),
                f"simulate() {{ {apt.simulate(packages, _OPTIONS)}; }}",
                _function("put_credentials", [_CREDENTIALS] if credentials else []),
                'remove_copy() { rm -rf "$copy"; }',
                script("packages/rehearsal_fact.sh"),
            ]
        )


def _own_keys(text: str, keys: Mapping[str, str]) -> str:
    for path in keys:
        text = text.replace(path, _private_key(path))
    return text


def _private_key(path: str) -> str:
    return apt_private.private_key(path).replace(apt_private.FOLDER, FOLDER)


def _planned(path: str, text: str) -> str:
    return f'printf %s {shlex.quote(text)} >"$copy/planned/{path.rpartition("/")[2]}"'


def _key(path: str, url: str) -> str:
    return f"key {shlex.quote(path)} {shlex.quote(_private_key(path))} {shlex.quote(url)}"


def _function(name: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{name}() {{", *lines, ":", "}"])
