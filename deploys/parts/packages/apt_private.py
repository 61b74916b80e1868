"""A private copy of a host's apt sources and lists, to try a change before the host has it.

    prepare(sources={source_path: text}, edits=[...], keys=[key_path])
    apt-get OPTIONS update -q              # may be left out: the host's lists are there already
    apt-get OPTIONS -s install PACKAGE
    apt-get OPTIONS indextargets ...
    apt-cache OPTIONS policy PACKAGE       # madison likewise
    REMOVE

All of it lies below `FOLDER`, and nothing else of the host changes: lists are symbolic links to
the host's until apt replaces one by a newer file, so an update downloads only what has changed
since the host's own. Indices of packages alone are read there (no translations, sources or metadata
of desktops), and kept compressed, since /run is memory. Preferences, credentials, trusted keys,
dpkg's state and all other configuration are the host's own, read in place. Hooks of updates do not
run.

No lock of the host is taken: `update` locks `FOLDER/lists` alone, and `-s install` locks nothing.

Everything has its mode set, whatever root's umask: apt downloads and checks signatures as the user
`_apt`, so folders and keys can be read by all; sources, which may hold passwords, by root alone.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence

from gpuboot.hosts.apt_sources import Edit

FOLDER = "/run/gpuboot/apt"
# for apt-get and apt-cache, before the command's name; -c is read after the host's own files
OPTIONS = f"-c {FOLDER}/apt.conf"
REMOVE = f"rm -rf {FOLDER}"
_CONFIGURATION = f"""\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Packages {{
  MetaKey "$(COMPONENT)/binary-$(ARCHITECTURE)/Packages";
  flatMetaKey "Packages";
  ShortDescription "Packages";
  Description "$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Packages";
  flatDescription "$(RELEASE) Packages";
}};
Acquire::GzipIndexes "true";
Acquire::Retries "0";
Dir::Etc::sourcelist "{FOLDER}/sources.list";
Dir::Etc::sourceparts "{FOLDER}/sources.list.d";
Dir::State::lists "{FOLDER}/lists";
Dir::Cache "{FOLDER}/cache";
Dir::Cache::archives "archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
"""
_COPY = f"""\
copy={FOLDER}
umask 022
mkdir -p /run/gpuboot && chmod 0755 /run/gpuboot && rm -rf $copy || exit
mkdir -p $copy/lists/partial $copy/cache/archives/partial || exit
mkdir -p $copy/keyrings $copy/sources.list.d || exit
umask 077
eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d \\
  lists Dir::State::lists/d)"
copy_of() {{
  if [ "$1" = "$list" ]; then printf %s $copy/sources.list
  else printf %s "$copy/sources.list.d/${{1##*/}}"; fi
}}
if [ -f "$list" ]; then cat "$list" > $copy/sources.list || exit; fi
for file in "$parts"*.list "$parts"*.sources; do
  if [ -f "$file" ]; then cat "$file" > "$(copy_of "$file")" || exit; fi
done
for file in "$lists"*; do
  if [ -f "$file" ] && [ "${{file##*/}}" != lock ]; then ln -s "$file" $copy/lists/ || exit; fi
done
"""


def prepare(
    source_files: Mapping[str, str],
    edits: Iterable[Edit] = (),
    keys: Sequence[str] = (),
) -> str:
    """The shell command, in a subshell, that makes the copy anew with a change of the sources.

    + source_files: files of sources that are to be there, by their path on the host -> text
    + edits: lines of files of others that become comments, and what stands in their place
    + keys: paths of keys on the host that the written files name and that are to come from
      somewhere else: in the copy those files name `private_key(path)` instead. Whoever asks for
      them puts them there before apt reads, with mode 0644
    """
    lines = ["(", f"{_COPY}printf %s {shlex.quote(_CONFIGURATION)} > $copy/apt.conf || exit"]
    # from the last line of a file to its first, since the lines are those of the file as it is
    for edit in sorted(edits, reverse=True):
        lines.append(f"file=$(copy_of {shlex.quote(edit.path)}); {replace_lines(edit)} || exit")
    for path, text in source_files.items():
        for key in keys:
            text = text.replace(key, private_key(key))
        copied = f'"$(copy_of {shlex.quote(path)})"'
        lines.append(f"printf %s {shlex.quote(text)} > {copied} || exit")
    return "\n".join([*lines, ")"])


def private_key(path: str) -> str:
    """Where the copy has a key. + path: its path on the host"""
    return f"{FOLDER}/keyrings/{path.rpartition('/')[2]}"


def private_source(path: str) -> str:
    """Where the copy has a file of sources that `prepare` wrote. + path: its path on the host"""
    return f"{FOLDER}/sources.list.d/{path.rpartition('/')[2]}"


def replace_lines(edit: Edit) -> str:
    """The shell command that applies an edit to `$file`, which keeps its owner and mode."""
    text = f"printf %s {shlex.quote(edit.text)}; " if edit.text else ""
    return (
        f'cp -p "$file" "$file.gpuboot-new" && {{ head -n {edit.first - 1} "$file"; '
        f'awk \'NR >= {edit.first} && NR <= {edit.last} {{ print "# " $0 }}\' "$file"; {text}'
        f'tail -n +{edit.last + 1} "$file"; }} > "$file.gpuboot-new" && '
        'mv "$file.gpuboot-new" "$file"'
    )
