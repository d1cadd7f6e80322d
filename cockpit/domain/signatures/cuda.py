"""CUDA errors that are not about memory, and builds that do not fit the card."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

CUDA: Final = (
    Signature(
        id="cuda-assert",
        family="crash",
        literals=("device-side assert triggered",),
        pattern=(r"(?:CUDA|HIP) error: device-side assert triggered"),
        cause="device_assert",
        remedies=("check_indices", "launch_blocking"),
        source="CUDA runtime",
        examples=("torch.AcceleratorError: CUDA error: device-side assert triggered",),
    ),
    Signature(
        id="cuda-illegal",
        family="crash",
        role="symptom",
        literals=("an illegal memory access was encountered",),
        pattern=(r"(?:CUDA|HIP) error: an illegal memory access was encountered"),
        cause="illegal_access",
        remedies=("launch_blocking", "other_attention"),
        source="CUDA runtime",
        examples=("torch.AcceleratorError: CUDA error: an illegal memory access was encountered",),
    ),
    Signature(
        id="cuda-launch",
        family="crash",
        role="symptom",
        literals=(
            "unspecified launch failure",
            "the launch timed out",
            "misaligned address",
            "hardware stack error",
            "illegal instruction",
        ),
        pattern=(
            r"(?:CUDA|HIP) error: (?P<_e>unspecified launch failure|the launch timed out and was"
            r" terminated|misaligned address|hardware stack error|an illegal instruction was"
            r" encountered)"
        ),
        cause="kernel_fault",
        remedies=("check_xid", "launch_blocking"),
        source="CUDA runtime",
        examples=("RuntimeError: CUDA error: unspecified launch failure",),
    ),
    Signature(
        id="cuda-ecc",
        family="hardware",
        literals=("uncorrectable ECC error encountered", "uncorrectable NVLink error"),
        pattern=(
            r"CUDA error: uncorrectable (?P<_what>ECC|NVLink) error (?:encountered|detected during the"
            r" execution)"
        ),
        cause="memory_hardware",
        remedies=("leave_card", "report_card", "resume_checkpoint"),
        source="CUDA runtime",
        examples=("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered",),
    ),
    Signature(
        id="cuda-noimage",
        family="env",
        literals=("no kernel image is available for execution on the device",),
        pattern=(r"no kernel image is available for execution on the device"),
        cause="no_kernel_image",
        remedies=("matching_wheel",),
        source="CUDA runtime",
        examples=(
            "torch.AcceleratorError: CUDA error: no kernel image is available for execution on "
            "the device",
        ),
    ),
    Signature(
        id="torch-sm",
        family="env",
        severity="warning",
        literals=("is not compatible with the current PyTorch installation.",),
        pattern=(
            r"(?P<_gpu>\S.{0,60}?) with CUDA capability sm_(?P<_sm>\d+) is not compatible with the"
            r" current PyTorch installation"
        ),
        cause="no_kernel_image",
        remedies=("matching_wheel",),
        source="pytorch torch/cuda/__init__.py",
        examples=(
            "NVIDIA B200 with CUDA capability sm_100 is not compatible with the current PyTorch "
            "installation.",
        ),
    ),
    Signature(
        id="cuda-none",
        family="env",
        literals=("No CUDA GPUs are available", "Found no NVIDIA driver on your system"),
        pattern=(r"No CUDA GPUs are available|Found no NVIDIA driver on your system"),
        cause="no_gpu_seen",
        remedies=("visible_devices",),
        source="pytorch",
        examples=("RuntimeError: No CUDA GPUs are available",),
    ),
    Signature(
        id="torch-cpu-build",
        family="env",
        literals=("Torch not compiled with CUDA enabled",),
        pattern=(r"Torch not compiled with CUDA enabled"),
        cause="cpu_wheel",
        remedies=("matching_wheel",),
        source="pytorch torch/cuda/__init__.py",
        examples=("AssertionError: Torch not compiled with CUDA enabled",),
    ),
    Signature(
        id="cuda-no-device",
        family="env",
        literals=("no CUDA-capable device is detected", "invalid device ordinal"),
        pattern=r"CUDA error: (?:no CUDA-capable device is detected|invalid device ordinal)",
        cause="no_gpu_seen",
        remedies=("visible_devices",),
        source="CUDA runtime",
        examples=("RuntimeError: CUDA error: invalid device ordinal",),
    ),
    Signature(
        id="missing-library",
        family="env",
        literals=("cannot open shared object file",),
        pattern=r"^(?:ImportError|OSError): (?P<path>lib\S+): cannot open shared object file",
        cause="missing_library",
        remedies=("matching_wheel", "install_missing"),
        source="glibc dlopen, as Python prints it",
        examples=(
            "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
        ),
    ),
    Signature(
        id="missing-module",
        family="env",
        literals=("ModuleNotFoundError: No module named",),
        pattern=r"^ModuleNotFoundError: No module named '(?P<_module>[\w.]{1,80})'",
        cause="missing_module",
        remedies=("install_missing", "check_environment"),
        source="Python",
        examples=("ModuleNotFoundError: No module named 'flash_attn'",),
    ),
)
