"""What does not change while a probe runs: who, where, which system, which rental platform.

Runs on hosts: Python >= 3.6, stdlib only.
"""

import os
import sys

from probe_processes import Users, number, read, read_all, text  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENVIRON_SIGNS = (
    (b"RUNPOD_POD_ID", "runpod"),
    (b"VAST_CONTAINERLABEL", "vast"),
    (b"VAST_TCP_PORT_22", "vast"),
    (b"AutoDLContainerUUID", "autodl"),
    (b"AutoDLRegion", "autodl"),
    (b"PAPERSPACE_METRIC_WORKLOAD_ID", "paperspace"),
    (b"LAMBDA_CLOUD", "lambda"),
    (b"FEATURIZE", "featurize"),
    (b"MATPOOL", "matpool"),
    (b"KUBERNETES_SERVICE_HOST", "kubernetes"),
)
PATH_SIGNS = (
    ("/etc/rp_environment", "runpod"),
    ("/root/.vast_containerlabel", "vast"),
    ("/.vast_containerlabel", "vast"),
    ("/etc/autodl-motd", "autodl"),
    ("/root/autodl-tmp", "autodl"),
    ("/hy-tmp", "gpushare"),
    ("/home/featurize", "featurize"),
    ("/home/paperspace", "paperspace"),
    ("/lambda/nfs", "lambda"),
    ("/etc/lambda-release", "lambda"),
    ("/home/user/datadisk", "lanrui"),
)
VENDOR_SIGNS = (
    (b"Amazon EC2", "aws"),
    (b"Google", "gcp"),
    (b"Microsoft Corporation", "azure"),
    (b"Lambda", "lambda"),
    (b"Hyperstack", "hyperstack"),
    (b"NexGen", "hyperstack"),
    (b"TensorDock", "tensordock"),
    (b"CoreWeave", "coreweave"),
    (b"Hetzner", "hetzner"),
    (b"DigitalOcean", "digitalocean"),
)


def facts(users: Users, root: str = "") -> "dict[str, Any]":
    """The hello's facts. `root` stands before each path, for tests."""
    system = os.uname()
    environ = read_all(root + "/proc/1/environ", 65536)
    inside = container(environ, root)
    return {
        "hostname": system.nodename,
        "user": users.name(os.getuid()),
        "uid": os.getuid(),
        "kernel": system.release,
        "os_name": os_name(root) or system.sysname,
        "python": "%d.%d.%d" % sys.version_info[:3],
        "cores": cores(),
        "platform": platform(environ, root),
        "container": inside,
        "incarnation": incarnation(root),
        "driver": driver(root),
        "source": "proc",
    }


def cores() -> "int | None":
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count()


def os_name(root: str = "") -> str:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        for line in read_all(root + path, 65536).split(b"\n"):
            if line.startswith(b"PRETTY_NAME="):
                return str(text(line.split(b"=", 1)[1].strip().strip(b"\"'"), 128))
    return ""


def incarnation(root: str = "") -> str:
    """Boot id and start of PID 1: a restarted container keeps the one and changes the other."""
    boot = text((read(root + "/proc/sys/kernel/random/boot_id", 64) or b"").strip(), 64)
    stat = read(root + "/proc/1/stat", 4096) or b""
    fields = stat[stat.rfind(b")") + 1 :].split()
    started = number(fields[19]) if len(fields) > 19 else None
    return "%s:%s" % (boot, "" if started is None else started)


def driver(root: str = "") -> "str | None":
    """The version of the loaded kernel module; known even where NVML cannot be opened."""
    line = (read(root + "/proc/driver/nvidia/version", 1024) or b"").split(b"\n", 1)[0]
    for word in line.split():
        if word[:1].isdigit() and word.count(b".") in (1, 2) and word.replace(b".", b"").isdigit():
            return str(text(word, 32))
    return None


def container(environ: bytes, root: str = "") -> "bool | None":
    """True inside a container, False on a machine of its own, None when nothing tells."""
    if b"\0container=" in b"\0" + environ or os.path.exists(root + "/.dockerenv"):
        return True
    if os.path.exists(root + "/run/.containerenv"):
        return True
    groups = read_all(root + "/proc/1/cgroup", 8192)
    if any(word in groups for word in (b"docker", b"kubepods", b"/lxc/", b"containerd", b"libpod")):
        return True
    first = (read(root + "/proc/1/comm", 64) or b"").strip()
    if first in (b"systemd", b"init", b"openrc-init", b"runit"):
        return False
    for line in read_all(root + "/proc/self/mounts", 65536).split(b"\n"):
        parts = line.split()
        if len(parts) > 2 and parts[1] == b"/" and parts[2] in (b"overlay", b"aufs"):
            return True
    return None


def platform(environ: bytes, root: str = "") -> "str | None":
    """The rental platform by what it leaves in PID 1's environment, in files, in the firmware."""
    own = b"\0".join(os.fsencode(name + "=") for name in os.environ) if not root else b""
    names = b"\0" + environ + b"\0" + own
    for sign, name in ENVIRON_SIGNS:
        if b"\0" + sign in names and name != "kubernetes":
            return name
    for path, name in PATH_SIGNS:
        if os.path.exists(root + path):
            return name
    vendor = read(root + "/sys/class/dmi/id/sys_vendor", 128) or b""
    product = read(root + "/sys/class/dmi/id/product_name", 128) or b""
    for sign, name in VENDOR_SIGNS:
        if sign in vendor or sign in product:
            return name
    return "kubernetes" if b"\0KUBERNETES_SERVICE_HOST" in names else None
