"""A driver that does not fit, does not answer or is not there."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

DRIVER: Final = (
    Signature(
        id="cuda-driver-old",
        family="driver",
        literals=(
            "CUDA driver version is insufficient for CUDA runtime version",
            "The NVIDIA driver on your system is too old",
        ),
        pattern=(
            r"CUDA driver version is insufficient for CUDA runtime version|The NVIDIA driver on your"
            r" system is too old \(found version (?P<_v>\d+)\)"
        ),
        cause="driver_too_old",
        remedies=("older_wheel", "newer_driver"),
        source="CUDA runtime, pytorch",
        examples=(
            "RuntimeError: The NVIDIA driver on your system is too old (found version 12020).",
        ),
    ),
    Signature(
        id="cuda-ptx",
        family="driver",
        literals=("the provided PTX was compiled with an unsupported toolchain",),
        pattern=(r"the provided PTX was compiled with an unsupported toolchain"),
        cause="driver_too_old",
        remedies=("older_wheel", "newer_driver"),
        source="CUDA driver",
        examples=(
            "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported "
            "toolchain.",
        ),
    ),
    Signature(
        id="cuda-804",
        family="driver",
        literals=("forward compatibility was attempted on non supported HW",),
        pattern=(r"forward compatibility was attempted on non supported HW"),
        cause="compat_libraries",
        remedies=("remove_compat", "restart_host"),
        source="CUDA runtime",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward "
            "compatibility was attempted on non supported HW",
        ),
    ),
    Signature(
        id="cuda-802",
        family="driver",
        literals=("system not yet initialized",),
        pattern=(r"Error 802: system not yet initialized|CUDA error: system not yet initialized"),
        cause="fabric_manager",
        remedies=("start_fabric_manager", "report_card"),
        source="CUDA runtime",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet "
            "initialized",
        ),
    ),
    Signature(
        id="cuda-busy",
        family="driver",
        literals=("busy or unavailable",),
        pattern=(r"(?:all )?CUDA-capable device\(s\) (?:is/are|are) busy or unavailable"),
        cause="card_busy",
        remedies=("compute_mode", "check_xid"),
        source="CUDA runtime",
        examples=("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",),
    ),
    Signature(
        id="nvml-mismatch",
        family="driver",
        literals=(
            "Driver/library version mismatch",
            "LIB_RM_VERSION_MISMATCH",
            "NVML/RM version mismatch",
        ),
        pattern=(
            r"Failed to initialize NVML: Driver/library version mismatch|"
            r"NVML_ERROR_LIB_RM_VERSION_MISMATCH|RM has detected an NVML/RM version mismatch"
        ),
        cause="driver_mismatch",
        remedies=("reload_driver", "restart_host"),
        source="nvidia-smi / NVML",
        examples=("Failed to initialize NVML: Driver/library version mismatch",),
    ),
    Signature(
        id="k-api-mismatch",
        family="driver",
        literals=("NVRM: API mismatch:",),
        pattern=(r"NVRM: API mismatch: (?:the )?client (?:has the )?version (?P<_c>[\d.]+)"),
        cause="driver_mismatch",
        remedies=("reload_driver", "restart_host"),
        kernel=True,
        source="nvidia kernel module",
        examples=("NVRM: API mismatch: the client has the version 570.133.07, but",),
    ),
    Signature(
        id="nvml-container",
        family="driver",
        literals=("Failed to initialize NVML:",),
        pattern=(
            r"Failed to initialize NVML: (?P<_e>Unknown Error|Insufficient Permissions|Driver Not"
            r" Loaded)"
        ),
        cause="container_lost_gpus",
        remedies=("restart_instance",),
        source="NVML in containers",
        examples=("Failed to initialize NVML: Unknown Error",),
    ),
    Signature(
        id="nvsmi-fail",
        family="driver",
        literals=(
            "communicate with the NVIDIA driver",
            "Unable to determine the device handle",
            "No devices were found",
        ),
        pattern=(
            r"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver|Unable to"
            r" determine the device handle for (?:gpu|GPU)\s?(?P<bus_id>[0-9A-Fa-f:.]+):"
            r" (?P<_why>[^.]+)|^No devices were found$"
        ),
        cause="driver_not_answering",
        remedies=("check_xid", "restart_instance"),
        source="nvidia-smi",
        examples=("Unable to determine the device handle for GPU0000:65:00.0: Unknown Error",),
    ),
    Signature(
        id="cuda-unknown",
        family="driver",
        literals=("CUDA unknown error", "CUDA driver initialization failed"),
        pattern=r"CUDA unknown error - this may be due to|CUDA driver initialization failed, you might not have",
        cause="driver_not_answering",
        remedies=("check_xid", "restart_instance"),
        source="pytorch c10/cuda, torch/csrc/cuda",
        examples=(
            "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing "
            "env variable CUDA_VISIBLE_DEVICES after program start.",
        ),
    ),
    Signature(
        id="container-cli",
        family="driver",
        literals=("nvidia-container-cli:",),
        pattern=r"nvidia-container-cli: (?P<_what>[\w ]{1,60} error): (?P<_why>.{1,120})",
        cause="driver_not_answering",
        remedies=("restart_instance", "check_xid"),
        source="libnvidia-container",
        examples=(
            "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.",
        ),
    ),
)
