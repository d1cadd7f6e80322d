"""What the driver and the kernel say about a card or its link."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

HARDWARE: Final = (
    Signature(
        id="nvml-lost",
        family="hardware",
        literals=("GPU is lost",),
        pattern=(r"GPU is lost(?:\. +Reboot the system to recover this GPU)?"),
        cause="gpu_lost",
        remedies=("restart_instance", "report_card"),
        source="NVML / nvidia-smi",
        examples=(
            "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the "
            "system to recover this GPU",
        ),
    ),
    Signature(
        id="k-gsp",
        family="hardware",
        literals=("GSP!",),
        pattern=(
            r"Timeout after (?P<_s>\d+)s of waiting for RPC response from GPU(?P<gpu_index>\d+) GSP!"
            r" Expected function (?P<_fn>\d+) \((?P<_name>\w+)\)"
        ),
        cause="gsp_timeout",
        remedies=("restart_instance", "update_driver"),
        kernel=True,
        source="open-gpu-kernel-modules kernel_gsp.c",
        examples=(
            "[612.1] NVRM: Xid (PCI:0000:65:00): 119, pid=991, name=nvidia-smi, Timeout after "
            "45s of waiting for RPC response from GPU0 GSP! Expected function 76 "
            "(GSP_RM_CONTROL) sequence 1201 (0x20800a4c 0x4).",
        ),
    ),
    Signature(
        id="xid",
        family="hardware",
        literals=("NVRM: Xid (",),
        pattern=(
            r"NVRM: Xid \((?:PCI:)?(?P<bus_id>[0-9A-Fa-f:.]+)(?: GPU-I:(?P<_gi>\d+))?(?:"
            r" GPU-CI:(?P<_ci>\d+))?\): (?P<xid>\d+)(?:, pid='?(?P<pid>\d+|<unknown>|\w+)'?)?(?:,"
            r" name=(?P<_name>[^,]+))?, (?P<_msg>.*?)(?: caused by previous Xid (?P<_prev>\d+))?$"
        ),
        cause="xid",
        remedies=("restart_instance",),
        kernel=True,
        source="NVIDIA open-gpu-kernel-modules src/nvidia/src/kernel/gpu/rc/kernel_rc.c",
        examples=(
            "[991.201] NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has "
            "fallen off the bus.",
            "[1201.7] NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, name=python3, "
            "Contained: CE User Channel (0x9). RST: No, D-RST: No",
            "[77.1] NVRM: Xid (PCI:0000:ca:00): 31, pid=20111, name=python3, Ch 00000011, intr "
            "00000000. MMU Fault: ENGINE GRAPHICS GPC3 GPCCLIENT_T1_0 faulted @ 0x7f3c_00000000. "
            "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
            "[78.1] NVRM: Xid (PCI:0000:ca:00): 45, pid=20111, name=python3, Ch 00000012 caused "
            "by previous Xid 31",
        ),
    ),
    Signature(
        id="sxid",
        family="hardware",
        literals=("SXid (PCI:",),
        pattern=(
            r"nvidia-nvswitch\d*: SXid \(PCI:(?P<bus_id>[0-9A-Fa-f:.]+)\): (?P<_sxid>\d+),"
            r" (?P<_msg>.*)$"
        ),
        cause="nvswitch",
        remedies=("fabric_log", "report_card"),
        kernel=True,
        source="open-gpu-kernel-modules common_nvswitch.h",
        examples=(
            "[88.2] nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 20034, Fatal, Link 41 LTSSM Fault "
            "Up",
        ),
    ),
    Signature(
        id="k-bus",
        family="hardware",
        literals=(
            "GPU has fallen off the bus",
            "fallen off the bus and is not responding to commands",
        ),
        pattern=(
            r"NVRM: (?:GPU (?P<bus_id>[0-9A-Fa-f:.]+): GPU has fallen off the bus|fallen off the bus"
            r" and is not responding to commands)"
        ),
        cause="gpu_lost",
        remedies=("restart_instance", "report_card"),
        kernel=True,
        source="open-gpu-kernel-modules osinit.c / osapi.c",
        examples=("[991.200] NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.",),
    ),
    Signature(
        id="k-aer",
        family="hardware",
        severity="warning",
        literals=("AER:", "PCIe Bus Error"),
        pattern=(
            r"(?:AER: |PCIe Bus Error: )(?:.*?severity=(?P<_sev>Corrected|Uncorrected"
            r" \((?:Non-)?Fatal\))|(?P<_kind>Uncorrectable|Uncorrected|Corrected|Multiple Corrected))"
        ),
        cause="pcie_errors",
        remedies=("check_link",),
        kernel=True,
        source="linux drivers/pci/pcie/aer.c",
        examples=(
            "[401.9] pcieport 0000:64:01.0: PCIe Bus Error: severity=Uncorrected (Fatal), "
            "type=Transaction Layer, (Requester ID)",
        ),
    ),
)
