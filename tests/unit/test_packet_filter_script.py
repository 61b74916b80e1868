"""What `packet_filter.sh` asks of a host's programs, and what of their answers it leaves out."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from deploys.parts.node import fact as node

SCRIPT = Path(node.__file__).with_name("packet_filter.sh")
NFT = """\
case "$*" in
'list tables') printf 'table %s\\n' 'ip kube-proxy' 'ip flannel-ipv4' 'ip nat' 'bridge b' \
 'ip filter' 'inet own' ;;
'list table inet own') printf 'table inet own {\\n\\tset s {\\n\\t\\telements = { 8.8.8.1,\\n'
 for i in $(seq 60); do printf '\\t\\t203.0.113.%d timeout 4h, 10.0.0.%d,\\n' $i $i; done
 printf '\\t\\t1.1.1.1 }\\n\\t}\\n}\\n' ;;
'list table ip filter') printf 'chain INPUT {\\n\\t\\ttype filter hook input\\n}\\n' ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
"""
SAVE = """\
[ "$*" = '-t filter' ] || exit 1
printf '%s\\n' '*filter' ':INPUT DROP [0:0]' ':KUBE-SERVICES - [0:0]' \
 '-A KUBE-SERVICES -d 10.96.3.4/32 -j REJECT' \
 '-A INPUT -m set --match-set nodes src -j ACCEPT' COMMIT
"""
IPSET = "[ \"$*\" = 'save nodes' ] && printf 'create nodes hash:ip\\nadd nodes 10.0.0.6\\n'"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Stand-ins of nft, iptables-nft-save and ipset."""
    for name, text in (("nft", NFT), ("iptables-nft-save", SAVE), ("ipset", IPSET)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(programs: Path, search_path: str = os.environ["PATH"]) -> list[str]:
    path = f"{programs}:{search_path}"
    command = ["sh", "-euc", f". {SCRIPT}\npacket_filter"]
    result = subprocess.run(
        command, env={"PATH": path}, capture_output=True, text=True, check=True, timeout=30
    )
    assert result.stderr == ""
    return result.stdout.splitlines()


def test_what_the_cluster_writes_itself_is_left_out(programs: Path) -> None:
    lines = run(programs)
    assert "filter_rule\tip iptables :INPUT DROP [0:0]" in lines
    assert not [line for line in lines if "-A KUBE-" in line or "kube-proxy" in line]
    assert not [line for line in lines if "flannel" in line or "bridge b" in line]


def test_rules_of_iptables_are_read_where_the_program_nft_is_absent(programs: Path) -> None:
    """Debian's ufw installs iptables, which does not bring nft along."""
    (programs / "nft").unlink()
    for name in ("awk", "sed", "sort", "grep", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    lines = run(programs, search_path="")
    assert "filter_rule\tip iptables :INPUT DROP [0:0]" in lines


def test_sets_that_rules_name(programs: Path) -> None:
    lines = run(programs)
    assert lines.index("filter_set\tnodes 10.0.0.6") < lines.index(
        "filter_rule\tip iptables -A INPUT -m set --match-set nodes src -j ACCEPT"
    )


def test_of_a_long_set_what_lies_in_private_networks(programs: Path) -> None:
    text = "\n".join(run(programs))
    assert "203.0.113.1 " in text
    assert "203.0.113.60 " not in text
    assert "filter_rule\tnft 10.0.0.60," in text
    assert text.endswith("filter_rule\tnft public }\nfilter_rule\tnft \t}\nfilter_rule\tnft }")
