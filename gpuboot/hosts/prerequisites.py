"""Packages that hosts need of their distribution, and those of the container toolkit."""

# what adds package repositories and loads kernel modules, so it comes before everything else
FIRST = ("ca-certificates", "curl", "gnupg", "kmod")
KUBERNETES = (
    "ca-certificates",
    "conntrack",
    "curl",
    "ethtool",
    "gnupg",
    "iproute2",
    "iptables",
    "kmod",
    "nftables",
    "pciutils",
    "socat",
)
DOCKER = ("ca-certificates", "curl", "gnupg", "iproute2", "iptables", "kmod", "pciutils")
TIME = "chrony"  # where nothing keeps the time yet
TOOLKIT = (
    "libnvidia-container1",
    "libnvidia-container-tools",
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
)
