"""The store: what decides a key, and that a folder is there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.build.progress import BuildQueue, BuildTimes, duration
from lab.build.store import digest, folder, stored


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBOOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GPUBOOT_STATE", str(tmp_path / "state"))


def test_digest_keeps_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab") == digest(b"ab")
    assert len(digest("ab")) == 12


def _tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_digest_of_a_folder_is_its_content_wherever_it_lies(tmp_path: Path) -> None:
    first = _tree(tmp_path / "one", a="1", sub__b="2")
    two = _tree(tmp_path / "two", sub__b="2", a="1", __pycache__="")
    assert digest(first) == digest(two)


@pytest.mark.parametrize("change", ["text", "name", "mode", "more"])
def test_digest_of_a_folder_notices_every_change(tmp_path: Path, change: str) -> None:
    root = _tree(tmp_path / "root", a="1", sub__b="2")
    before = digest(root)
    if change == "text":
        (root / "a").write_text("3")
    elif change == "name":
        (root / "a").rename(root / "c")
    elif change == "mode":
        (root / "a").chmod(0o755)
    else:
        (root / "sub" / "c").write_text("")
    assert digest(root) != before


def test_digest_of_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        digest(tmp_path / "nowhere")


def test_stored_makes_once() -> None:
    parts = []

    def make(part: Path) -> None:
        parts.append(part)
        (part / "file").write_text("content")

    assert stored("thing-1", make) == stored("thing-1", make) == folder("thing-1")
    assert len(parts) == 1
    assert (folder("thing-1") / "file").read_text() == "content"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_stored_leaves_nothing_half_made(error: type[BaseException]) -> None:
    def make(part: Path) -> None:
        (part / "half").write_text("")
        assert not folder("thing-1").exists()
        raise error

    with pytest.raises(error):
        stored("thing-1", make)
    assert list(folder("").iterdir()) == []


def test_stored_clears_what_a_killed_process_left() -> None:
    leftover = folder(".tmp-thing-1-4711")
    leftover.mkdir(parents=True)
    stored("thing-1", lambda part: None)
    assert [path.name for path in folder("").iterdir()] == ["thing-1"]


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (99, "99 s"), (130, "2 min")])
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_row_estimates_from_the_last_time_and_remembers(tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    BuildTimes(path).record("first", 40)
    lines: list[str] = []
    queue = BuildQueue({"first": 10, "second": 20}, lines.append, BuildTimes(path))
    assert queue.remaining_s() == 60
    assert queue.remaining_s("first", running=15) == 45
    assert queue.remaining_s("first", running=500) == 20
    with queue.step("first"):
        pass
    assert queue.remaining_s() == 20
    assert lines[0] == "[1/2] first: about 40 s; all that is left: about 60 s"
    assert lines[1].startswith("[1/2] first: made in 0 s")
    assert BuildTimes(path).seconds["first"] < 1


def test_row_does_not_count_what_failed(tmp_path: Path) -> None:
    queue = BuildQueue({"first": 10}, lambda line: None, BuildTimes(tmp_path / "times.json"))
    with pytest.raises(OSError, match="disk"), queue.step("first"):
        raise OSError("disk")
    assert queue.seconds_by_step == {}
    assert BuildTimes(tmp_path / "times.json").seconds == {}


def test_times_survive_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    path.write_text("[1]")
    assert BuildTimes(path).seconds == {}
