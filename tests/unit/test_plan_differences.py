"""What differs between old and new, and what of it is hidden."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuboot.plan import Change
from gpuboot.plan.differences import safe_text, text_change, value_changes
from gpuboot.plan.terminal import change_lines


def test_values_differ_key_by_key() -> None:
    old = {"a": {"b": 1, "c": [1, 2]}, "gone": True, "list": [{"name": "x", "v": 1}]}
    new = {"a": {"b": 2, "c": [1, 2]}, "list": [{"name": "x", "v": 2}, {"name": "y", "v": 3}]}
    assert [(change.field, change.old, change.new) for change in value_changes("s", old, new)] == [
        ("a.b", 1, 2),
        ("gone", True, None),
        ("list[x].v", 1, 2),
        ("list[y]", None, {"name": "y", "v": 3}),
    ]


def test_members_of_long_lists_come_and_go_one_by_one() -> None:
    changes = value_changes("s", {"l": [1, 2, 3, 4]}, {"l": [1, 2, 3, 5]})
    assert [(change.field, change.old, change.new) for change in changes] == [
        ("l[]", 4, None),
        ("l[]", None, 5),
    ]
    [order] = value_changes("s", {"l": [1, 2, 3, 4]}, {"l": [2, 1, 3, 4]})
    assert (order.old, order.new) == ("an order", "another order")


def test_a_text_is_its_lines_that_differ() -> None:
    [change] = value_changes("s", {"csv": "A, gauge\n"}, {"csv": "A, gauge\nB, counter\n"})
    assert change.diff == ("+B, counter",)
    assert text_change("s", None, "a\nb\n").new == "2 lines"
    assert list(change_lines(change)) == ["~ s: csv", "    +B, counter"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"adminPassword": "one"}, {"adminPassword": "very-secret"}),
        ({"auth": {"token": "a"}}, {"auth": {"token": "very-secret"}}),
        ({"env": [{"name": "DB_PASSWORD", "value": "a"}]},
         {"env": [{"name": "DB_PASSWORD", "value": "very-secret"}]}),
        ({}, {"env": [{"name": "API_TOKEN", "value": "very-secret"}]}),
        ({}, {"grafana": {"smtp": {"password": "very-secret"}}}),
        ({"url": "http://a"}, {"url": "http://me:very-secret@a"}),
        ({"ini": "a = 1\n"}, {"ini": "a = 1\npassword = very-secret\n"}),
        ({"pem": ""}, {"pem": "-----BEGIN RSA PRIVATE KEY-----\nvery-secret\n-----END"}),
        ({"header": "Authorization: Basic a"}, {"header": "Authorization: Basic very-secret"}),
    ],
)  # fmt: skip
def test_values_that_are_named_like_secrets_are_hidden(old: Any, new: Any) -> None:
    changes = value_changes("s", old, new)
    assert changes, "that something differs is told"
    assert "very-secret" not in repr(changes)
    assert "very-secret" not in json.dumps([item.to_json() for item in changes])


def test_names_of_secrets_are_no_secrets() -> None:
    [change] = value_changes("s", {"existingSecret": "a"}, {"existingSecret": "b"})
    assert (change.old, change.new) == ("a", "b")


def test_hidden_values_are_gone() -> None:
    change = Change(subject="Secret a/b", field="k", old="very-secret", new=None, hidden=True)
    assert (change.old, change.new) == ("(hidden)", None)
    assert "very-secret" not in repr(change)
    assert safe_text("http://me:pw@host") == "http://***@host"
