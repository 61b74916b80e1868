"""What the pages use of programs that are not ours: subcommands, and options."""

from __future__ import annotations

import re

# Programs of others: what the pages use of them. Options with a value of their own end in "=".
# kubectl's and amtool's are compared with the programs themselves below; the others are from
# nvidia-smi 595 --help, DCGM 4.8 dcgmi --help, and Debian 12's manual pages.
OTHER_PROGRAMS: dict[str, str] = {
    "amtool alert query": "--alertmanager.url=",
    "amtool config routes test": "--alertmanager.url=",
    "amtool silence add": "--alertmanager.url= --author= --duration= --comment=",
    "amtool silence query": "--alertmanager.url=",
    "amtool silence expire": "--alertmanager.url=",
    "base64": "-d",
    "cat": "",
    "curl": "-s -k -v -sv -kv --max-time= -o= -w=",
    "dcgmi diag": "-r= -j -h",
    "dcgmi discovery": "-l",
    "dcgmi dmon": "-e= -d=",
    "dcgmi group": "-c= -a= -l -d=",
    "dcgmi health": "-s= -f -c -j",
    "dcgmi policy": "-g= --set= --get --reg --clear -T= -P= -M= -e -x -n -p",
    "dcgmi stats": "-g= -e -d -m= -s= -x= -j= -r= -p= -v",
    "dcgmi profile": "--pause --resume",
    "docker compose": "-f= -p=",
    "docker info": "",
    "docker run": "--gpus= --rm",
    "docker stop": "",
    "dockerd": "--validate",
    "dpkg": "-l --configure -a",
    "etcdctl defrag": "--cacert= --cert= --key=",
    "grafana cli admin reset-admin-password": "",
    "helm upgrade": "--install --repo= -n= -f=",
    "ipmitool sdr": "",
    "ipmitool sel list": "",
    "journalctl": "-k -n= -o= -u= -g= --since= -b= --no-pager --vacuum-size=",
    "kubeadm certs check-expiration": "",
    "kubeadm certs renew": "",
    "kubeadm init phase": "--config=",
    "kubeadm join": "",
    "kubeadm reset": "",
    "kubectl apply": "-f=",
    "kubectl certificate approve": "",
    "kubectl cordon": "",
    "kubectl create configmap": "-n= --from-file= --from-literal=",
    "kubectl create namespace": "",
    "kubectl create secret tls": "-n= --cert= --key=",
    "kubectl delete": "--raw= --grace-period= --force -n= -l= --field-selector=",
    "kubectl describe": "-n=",
    "kubectl drain": "--ignore-daemonsets --delete-emptydir-data",
    "kubectl exec": "-n= -i -c=",
    "kubectl get": "-A -L= -n= -o= -l= --field-selector= --raw= --show-labels",
    "kubectl label": "-n= --overwrite",
    "kubeadm upgrade plan": "",
    "kubectl logs": "-n= -c= -l= --ignore-errors --prefix --tail= --previous",
    "kubectl patch": "-n= -p=",
    "kubectl port-forward": "-n= --kubeconfig=",
    "kubectl rollout restart": "-n=",
    "kubectl scale": "-n= --replicas=",
    "kubectl taint": "--all",
    "kubectl top": "",
    "kubectl uncordon": "",
    "lspci": "-d= -s= -nn -nnk -vv",
    "nvidia-smi": "--query-gpu --query-compute-apps --format -q -d= -i= -L -pl= -rgc --gpu-reset "
    "-mig=",
    "nvidia-smi mig": "-lgip -lgi -cgi= -C -cci -dci -dgi -i=",
    "nvidia-smi topo": "-m",
    "nvidia-smi nvlink": "-s --status -e -R -i=",
    "ssh": "-L= -p= -J= -v",
    "ssh-keyscan": "-p= -t=",
    "systemctl cat": "",
    "systemctl daemon-reexec": "",
    "systemctl daemon-reload": "",
    "systemctl disable": "--now",
    "systemctl edit": "",
    "systemctl enable": "--now",
    "systemctl reboot": "",
    "systemctl restart": "",
    "systemctl start": "",
    "systemctl status": "",
    "systemctl stop": "",
    "ufw allow": "",
    "ufw route allow": "",
    "vagrant up": "",
}
# those that only remedies name
OF_HOSTS: dict[str, str] = {
    "apt-cache madison": "",
    "apt install": "",
    "apt-get install": "-y",
    "containerd config dump": "",
    "crictl images": "",
    "crictl pods": "-q --namespace= --label= --state=",
    "crictl ps": "-a --name=",
    "crictl pull": "",
    "crictl rmi": "--prune",
    "crictl stopp": "",
    "ctr plugins ls": "",
    "date": "",
    "df": "-h -i",
    "dkms autoinstall": "",
    "dkms generate_mok": "",
    "dkms install": "-k=",
    "dmesg": "--level=",
    "dnf install": "-y",
    "du": "-xh --max-depth=",
    "find": "-path= -size= -exec -n=",
    "findmnt": "-no=",
    "firewall-cmd": "--permanent --zone= --add-source= --add-port= --reload",
    "getent hosts": "",
    "hostname": "",
    "ip link set": "",
    "ip link show": "-d",
    "ip route": "",
    "ip rule": "",
    "iptables": "-S -I= -s= -d= -j=",
    "kubeadm kubeconfig user": "--org= --client-name= --config=",
    "kubectl edit": "-n=",
    "ls": "-R -l -lZ",
    "modinfo": "-F=",
    "modprobe": "",
    "mokutil": "--import= --timeout=",
    "nft list ruleset": "",
    "nvidia-container-cli info": "",
    "nvidia-ctk cdi generate": "--output=",
    "nvidia-ctk cdi list": "",
    "nvidia-ctk runtime configure": "--runtime=",
    "nvidia-ctk system create-dev-char-symlinks": "--create-all",
    "openssl s_client": "-connect= -showcerts",
    "openssl x509": "-noout -dates -ext=",
    "ping": "-c=",
    "printf": "",
    "ps": "-eo= --sort=",
    "reboot": "",
    "rm": "-f",
    "ss": "-ltnp",
    "stat": "-fc=",
    "swapoff": "-a",
    "sysctl": "-w",
    "systemctl list-units": "--type=",
    "systemctl show": "-p=",
    "systemctl unmask": "",
    "systemd-machine-id-setup": "",
    "tee": "",
    "timedatectl set-ntp": "",
    "timedatectl": "",
    "true": "",
    "uname": "-m",
    "update-initramfs": "-u",
}
ALL = OTHER_PROGRAMS | OF_HOSTS
# what these get from stdin or write to says nothing about the command itself
REDIRECTED = {">", "<"}


def placeholder(word: str) -> bool:
    """A word in the place of the reader's own: NODE, INVENTORY, GPU-…"""
    return word.isupper() or "…" in word or word.startswith("[")


def check_other(words: tuple[str, ...]) -> None:
    """The subcommand is one of the table, and so is each option."""
    words = tuple(word for word in words if not placeholder(word) or word.startswith("-"))
    options, plain = options_of(words)
    if plain[0] == "ssh":
        plain = plain[:1]
    command = max(
        (name for name in ALL if plain[: len(name.split())] == name.split()),
        key=len,
        default=None,
    )
    assert command is not None, f"no such command in the table: {' '.join(plain)}"
    unknown = options - {option.rstrip("=") for option in ALL[command].split()}
    assert not unknown, f"{command}: {', '.join(sorted(unknown))}"


def options_of(words: tuple[str, ...]) -> tuple[set[str], list[str]]:
    """Options of a command, and what else it says without their values.

    What follows a `--` or a redirection, and what ssh runs on the other side, is not its own.
    """
    valued = {
        option.rstrip("=")
        for name, text in ALL.items()
        if name.split()[0] == words[0]
        for option in text.split()
        if option.endswith("=")
    }
    options: set[str] = set()
    plain: list[str] = []
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if word == "--" or word in REDIRECTED:
            break
        if re.match(r"--?[a-zA-Z]", word):
            name, _, value = word.partition("=")
            options.add(name)
            if name in valued and not value and remaining:
                remaining.pop(0)
        else:
            plain.append(word)
            if words[0] == "ssh" and len(plain) > 1:
                break
    return options, plain
