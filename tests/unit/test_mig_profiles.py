"""The table of MIG profiles beside the operator's own layouts, which `tests/unit` has recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuboot.hosts import mig_profiles
from gpuboot.usage.shares import share

OPERATOR: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "operator_mig_layouts.yaml").read_text()
)
# an older driver's names of GB200's profiles (NVIDIA/gpu-operator pull request 1303)
OLD_NAMES = {"3g.95gb", "4g.95gb", "7g.189gb"}


@pytest.mark.parametrize("row", OPERATOR["balanced"], ids=lambda row: hex(row["ids"][0]))
def test_every_model_of_the_operator_is_there_and_balanced_alike(row: dict[str, Any]) -> None:
    for device in row["ids"]:
        card = mig_profiles.card(device)
        assert card is not None
        assert mig_profiles.made_of("all-balanced", card.counts) == row["counts"]
        assert card.fits(row["counts"])


def test_no_other_model_is_there() -> None:
    ids = {device for row in OPERATOR["balanced"] for device in row["ids"]}
    assert {device for card in mig_profiles.CARDS for device in card.devices} == ids


@pytest.mark.parametrize("row", OPERATOR["layouts"], ids=lambda row: str(row))
def test_as_many_of_a_profile_as_in_the_operator_s_layout(row: dict[str, Any]) -> None:
    """H200 NVL is in no filter of all-1g.35gb, where mig-parted finds what its driver says: 4."""
    cards = [
        card
        for card in mig_profiles.CARDS
        if row["profile"] in card.counts
        and (row["ids"] == "any" or set(row["ids"]) & set(card.devices))
    ]
    assert bool(cards) == (row["profile"] not in OLD_NAMES)
    for card in cards:
        assert card.counts[row["profile"]] == row["count"], card.name
        assert card.fits({row["profile"]: row["count"]})
        assert not card.fits({row["profile"]: row["count"] + 1})


def test_every_profile_of_the_table_is_in_a_layout_of_the_operator() -> None:
    """RTX PRO 6000's graphics and media profiles too."""
    profiles = {row["profile"] for row in OPERATOR["layouts"]}
    assert {name for card in mig_profiles.CARDS for name in card.counts} == profiles - OLD_NAMES


@pytest.mark.parametrize(
    ("model", "card"),
    [
        ("NVIDIA GB200", "GB200"), ("NVIDIA B200", "B200"), ("NVIDIA GB300", "GB300"),
        ("NVIDIA B300 SXM6 AC", "B300"), ("NVIDIA H200 NVL", "H200"), ("NVIDIA H100 NVL",
        "H100 or H800 NVL"), ("NVIDIA GH200 144G HBM3e", "GH200 144GB"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000"),
        ("NVIDIA H20", "H100 96GB, H20, GH200 or PG506"), ("Tesla T4", None),
    ],
)  # fmt: skip
def test_a_model_by_its_name(model: str, card: str | None) -> None:
    """Costs ask by name, where preflight has the PCI device id: both find the same row."""
    profiles = mig_profiles.of_model(model)
    assert (profiles.name if profiles else None) == card


@pytest.mark.parametrize(
    ("profile", "model", "part"),
    [
        ("1g.23gb", "NVIDIA GB200", 1 / 7), ("1g.47gb", "NVIDIA GB200", 1 / 4),
        ("3g.93gb", "NVIDIA GB200", 1 / 2), ("7g.186gb", "NVIDIA GB200", 1),
        ("1g.34gb", "NVIDIA B300 SXM6 AC", 1 / 7), ("2g.70gb", "NVIDIA GB300", 2 / 7),
        ("1g.24gb+gfx", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 1 / 4),
        ("2g.48gb-me", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 1 / 2),
    ],
)  # fmt: skip
def test_shares_of_blackwell(profile: str, model: str, part: float) -> None:
    assert share(profile, model) == pytest.approx(part)
