"""Disks, checkpoints, downloads and ports."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

STORAGE: Final = (
    Signature(
        id="k-hung",
        family="disk",
        severity="warning",
        literals=("blocked for more than",),
        pattern=(
            r"INFO: task (?P<_comm>.+?):(?P<pid>\d+) blocked for more than (?P<_s>\d+) seconds"
        ),
        cause="task_blocked",
        remedies=("check_mounts",),
        kernel=True,
        source="linux kernel/hung_task.c",
        examples=("[5012.1] INFO: task python3:31877 blocked for more than 120 seconds.",),
    ),
    Signature(
        id="k-io",
        family="disk",
        literals=("I/O error", "Remounting filesystem read-only", "EXT4-fs error"),
        pattern=(
            r"(?:Buffer )?I/O error(?: on dev|, dev) (?P<_dev>[\w-]+)|Remounting filesystem read-only|"
            r"EXT4-fs error \(device (?P<_d2>[\w-]+)\)"
        ),
        cause="disk_failing",
        remedies=("copy_off", "report_card"),
        kernel=True,
        source="linux block/fs",
        examples=(
            "[5100.7] blk_update_request: I/O error, dev nvme1n1, sector 991240 op 0x1:(WRITE) "
            "flags 0x0",
        ),
    ),
    Signature(
        id="edquot",
        family="disk",
        literals=("Disk quota exceeded",),
        pattern=(r"\[Errno 122\] Disk quota exceeded|Disk quota exceeded"),
        cause="quota",
        remedies=("free_disk", "other_volume"),
        source="libc errno 122",
        examples=("OSError: [Errno 122] Disk quota exceeded",),
    ),
    Signature(
        id="enospc",
        family="disk",
        literals=("No space left on device",),
        pattern=(
            r"(?:[A-Za-z]*Error\b|error|tar|cp|mv|dd|rsync|mkdir|wget|curl|write|Errno 28\]).*?No"
            r" space left on device(?:: '(?P<path>[^']+)')?"
        ),
        cause="disk_full",
        remedies=("free_disk", "keep_few_checkpoints", "other_volume", "verify_checkpoint"),
        source="libc errno 28",
        examples=(
            "OSError: [Errno 28] No space left on device: '/workspace/ckpt/step-4000/optimizer.pt'",
            "safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left "
            "on device (os error 28)",
        ),
    ),
    Signature(
        id="torch-save",
        family="disk",
        literals=("PytorchStreamWriter failed", "unexpected pos"),
        pattern=(
            r"PytorchStreamWriter failed writing file (?P<path>\S+): file write failed|unexpected pos"
            r" \d+ vs \d+"
        ),
        cause="save_failed",
        remedies=("free_disk", "verify_checkpoint"),
        source="pytorch caffe2/serialize/inline_container.cc",
        examples=(
            "RuntimeError: [enforce fail at inline_container.cc:664] . unexpected pos 1310720 vs "
            "1310612",
        ),
    ),
    Signature(
        id="ckpt-corrupt",
        family="disk",
        literals=("PytorchStreamReader failed", "Error while deserializing header"),
        pattern=(
            r"PytorchStreamReader failed (?:reading zip archive: failed finding central directory|"
            r"reading file)|Error while deserializing header: (?P<_w>\w+)"
        ),
        cause="checkpoint_truncated",
        remedies=("previous_checkpoint", "download_again"),
        source="pytorch / safetensors",
        examples=(
            "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding "
            "central directory",
        ),
    ),
    Signature(
        id="estale",
        family="disk",
        literals=(
            "Stale file handle",
            "[Errno 5] Input/output error",
            "Read-only file system",
            "Transport endpoint is not connected",
        ),
        pattern=(
            r"\[Errno 116\] Stale file handle|\[Errno 5\] Input/output error|\[Errno 30\] Read-only"
            r" file system|\[Errno 107\] Transport endpoint is not connected"
        ),
        cause="mount_broke",
        remedies=("check_mounts",),
        source="libc",
        examples=("OSError: [Errno 116] Stale file handle: '/mnt/data/shard-0012.tar'",),
    ),
    Signature(
        id="hf-space",
        family="disk",
        severity="warning",
        literals=("Not enough free disk space to download the file.",),
        pattern=(
            r"Not enough free disk space to download the file\. The expected file size is:"
            r" (?P<needed_mib>[\d.]+ MB)\. The target location (?P<path>\S+) only has"
            r" (?P<available_mib>[\d.]+ MB) free disk space"
        ),
        cause="disk_too_small",
        remedies=("other_volume", "free_disk"),
        source="huggingface_hub file_download.py",
        examples=(
            "UserWarning: Not enough free disk space to download the file. The expected file "
            "size is: 4976.70 MB. The target location "
            "/root/.cache/huggingface/hub/models--x--y/blobs only has 1203.10 MB free disk space.",
        ),
    ),
    Signature(
        id="hf-stall",
        family="env",
        severity="warning",
        role="count",
        literals=("Error while downloading from",),
        pattern=(r"Error while downloading from (?P<_url>\S+?): (?P<_err>.*)$"),
        cause="download_stalls",
        remedies=("hf_xet", "predownload"),
        at_least=3,
        source="huggingface_hub file_download.py",
        examples=(
            "Error while downloading from https://cas-bridge.xethub.hf.co/x: "
            "HTTPSConnectionPool(host='cas-bridge.xethub.hf.co', port=443): Read timed out.",
        ),
    ),
    Signature(
        id="hf-401",
        family="env",
        literals=(
            "GatedRepoError",
            "RepositoryNotFoundError",
            "LocalEntryNotFoundError",
            "OfflineModeIsEnabled",
            "Cannot access gated repo",
        ),
        pattern=(
            r"(?:GatedRepoError|RepositoryNotFoundError|LocalEntryNotFoundError|"
            r"OfflineModeIsEnabled)\b.*|Cannot access gated repo for url \S+"
        ),
        cause="hub_refused",
        remedies=("hf_token",),
        source="huggingface_hub errors",
        examples=("huggingface_hub.errors.GatedRepoError: 403 Client Error.",),
    ),
    Signature(
        id="port",
        family="port",
        literals=("ddress already in use", "EADDRINUSE", "is already in use", "is in use"),
        pattern=(
            r"\[Errno (?:98|48)\] (?:error while attempting to bind on address \('[^']*', (?P<port>\d+)[^)]*\): )?"
            r"[Aa]ddress already in use"
            r"|port: (?P<_port2>\d+),.{0,120}EADDRINUSE|EADDRINUSE"
            r"|listen tcp \S*?:(?P<_port3>\d+): bind: address already in use"
            r"|bind.{0,60}: [Aa]ddress already in use"
            r"|\b[Pp]ort (?P<_port4>\d{2,5}) is (?:already )?in use"
        ),
        cause="port_taken",
        remedies=("free_port", "kill_orphan"),
        source="libc errno 98",
        examples=(
            "OSError: [Errno 98] Address already in use",
            "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
            "Error: listen tcp 127.0.0.1:11434: bind: address already in use",
        ),
    ),
)
