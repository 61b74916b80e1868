"""Where the project's files are that no Python package holds, and how a folder links to them.

In a checkout they stand beside the package, in an installed wheel in the folder `project` in it.
"""

from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
ROOT = _PACKAGE / "project" if (_PACKAGE / "project").is_dir() else _PACKAGE.parent
_LINKED = ("config.py", "group_data/all.py")


def link_project(folder: Path) -> list[str]:
    """Make a folder one that `pyinfra INVENTORY deploys/site.py` works in; return the new links.

    A folder that has a `config.py` is a checkout or was linked before, and is left alone. Links of
    an environment that is gone are renewed, as their files do not exist; files are kept.
    """
    if (folder / "config.py").exists():
        return []
    spec = find_spec("deploys")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("the package `deploys` is not installed beside `gpuboot`")
    targets = {"deploys": Path(spec.origin).resolve().parent}
    targets |= {name: ROOT / name for name in _LINKED}
    return [name for name, target in targets.items() if _link(folder / name, target)]


def _link(path: Path, target: Path) -> bool:
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    return True
