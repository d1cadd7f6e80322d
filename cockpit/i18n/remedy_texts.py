"""What to do, one sentence a remedy; the variant with the most numbers that are known is taken."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.pulse_texts import PULSE_REMEDIES
from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.server_texts import SERVER_REMEDIES

REMEDIES: Final[dict[str, tuple[str, ...]]] = {
    "stop_or_raise_budget": (
        _("Stop the run, or raise [budget] of its profile for the next one."),
    ),
    # training
    "smaller_batch": (
        _(
            "Batch {batch} instead of {batch_before}, accumulation {steps} instead of {steps_before}: "
            "same result, a little slower."
        ),
        _("Batch {batch} instead of {batch_before}."),
        _("A smaller batch with more gradient accumulation: same result, a little slower."),
    ),
    "gradient_checkpointing": (
        _("Turn gradient checkpointing on: the batch stays, about 25 % slower."),
    ),
    "shorter_sequences": (
        _("Sequences of {tokens} tokens instead of {tokens_before}; the longest batch decides."),
        _("Cap or pack the sequences; the longest batch decides."),
    ),
    "smaller_images": (
        _("Smaller images: imgsz {size} instead of {size_before}."),
        _("Smaller images (imgsz)."),
    ),
    "lean_optimizer": (_("bf16 with an 8-bit or paged optimizer, or LoRA."),),
    "shard": (
        _("Shard more: ZeRO stage {stage}."),
        _("Shard over more cards: FSDP, or ZeRO-2 and ZeRO-3."),
    ),
    "offload": (_("Offload the optimizer or the parameters to the host's memory."),),
    "bigger_card": (_("A card with more memory."),),
    "quantise_weights": (_("Load the weights in 4 or 8 bits, or in bf16."),),
    "fused_attention": (_("Use fused attention (SDPA or FlashAttention)."),),
    "chunked_loss": (_("Compute the loss in chunks, or with a fused kernel."),),
    "print_shapes": (
        _("Print the shapes just before it; look for a swapped or overflowing size."),
    ),
    "smaller_eval_batch": (
        _("Evaluation batch {batch} instead of {batch_before}."),
        _("A smaller evaluation batch (per_device_eval_batch_size)."),
    ),
    "predictions_to_cpu": (
        _("Move predictions to the host while evaluating (eval_accumulation_steps)."),
    ),
    "save_sharded": (_("Save a sharded state dict instead of gathering it on one card."),),
    "empty_cache": (_("Empty the cache where phases change (torch.cuda.empty_cache())."),),
    "expandable_segments": (
        _(
            "Let the allocator grow in pieces: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PyTorch 2.1 or newer)."
        ),
    ),
    "raise_memory_fraction": (
        _("Raise or remove the memory fraction (set_per_process_memory_fraction)."),
    ),
    "lower_memory_fraction": (
        _("Leave room for libraries: set_per_process_memory_fraction(0.9)."),
    ),
    "fixed_shapes": (_("Pad to a few fixed shapes."),),
    "kill_orphan": (
        _("Look who process {pid} is; if it is a leftover of an earlier run, end it."),
        _("Look for a leftover of an earlier run on the card, and end it."),
    ),
    "pick_empty_card": (
        _("Take a card of your own: ask for {gib} GiB free and do not share."),
        _("Take another card that is empty."),
    ),
    "look_at_card": (_("Look at the other processes on the card."),),
    "pinned_memory": (
        _("For pinned memory: look at the locked-memory limit and the container's memory."),
    ),
    "fewer_communicators": (_("Fewer process groups: each has its own NCCL buffers."),),
    "headroom": (_("Leave 0.5 to 1 GiB free on the card."),),
    "compare_smi": (_("Compare with nvidia-smi or rocm-smi at that moment."),),
    "cublas_workspace": (_("A smaller cuBLAS workspace: CUBLAS_WORKSPACE_CONFIG=:16:8."),),
    "launch_blocking": (_("Run once with CUDA_LAUNCH_BLOCKING=1 to see which call it is."),),
    "check_indices": (
        _("Check that labels and token ids are in range; on the CPU the error names the line."),
    ),
    "cudnn_benchmark_off": (_("Set torch.backends.cudnn.benchmark = False."),),
    "reinstall_cudnn": (_("If memory is free: install the cuDNN that fits this PyTorch."),),
    "check_dtype": (_("If memory is free: check the data type and layout."),),
    "fft_plan_cache": (
        _("Limit the FFT plan cache (torch.backends.cuda.cufft_plan_cache.max_size)."),
    ),
    "stage3_live": (_("Lower stage3_max_live_parameters."),),
    "remat": (_("Recompute activations (jax.checkpoint)."),),
    "xla_fraction": (
        _(
            "Raise XLA_PYTHON_CLIENT_MEM_FRACTION, or turn preallocation off where the card is shared."
        ),
    ),
    "tf_growth": (_("Let TensorFlow grow (set_memory_growth) where the card is shared."),),
    "ort_limit": (_("Raise gpu_mem_limit, or set arena_extend_strategy to kSameAsRequested."),),
    # serving
    "lower_utilisation_to_free": (
        _("Take no more than what is free: gpu_memory_utilization = {value}."),
        _("Lower gpu_memory_utilization to what is free."),
    ),
    "raise_utilisation": (
        _("Allow a larger share of the card: gpu_memory_utilization = {value}."),
        _("Allow a larger share of the card (gpu_memory_utilization)."),
    ),
    "lower_utilisation": (
        _("Leave more room beside the KV cache: gpu_memory_utilization = {value}."),
        _("Leave more room beside the KV cache: lower gpu_memory_utilization by 0.03 to 0.05."),
    ),
    "split_utilisation": (
        _("Two servers on one card: split the utilisation so that the sum stays below 0.95."),
    ),
    "max_model_len_that_fits": (
        _("Limit the length to what fits: max_model_len = {value}."),
        _("Limit the length (max_model_len)."),
    ),
    "shorter_model_len": (
        _("A shorter longest request: {option} = {value}."),
        _("A shorter longest request (context length)."),
    ),
    "kv_fp8": (_("Keep the KV cache in fp8: about twice as many tokens fit."),),
    "max_num_seqs_down": (
        _("Fewer requests at once: {option} = {value}."),
        _("Fewer requests at once: max_num_seqs = {value}."),
        _("Fewer requests at once (max_num_seqs)."),
    ),
    "fewer_requests": (
        _("Fewer requests at once: {option} = {value}."),
        _("Fewer requests at once (max_running_requests)."),
    ),
    "fewer_batched_tokens": (
        _("Smaller steps: {option} = {value}; this cuts the peak that is measured."),
        _("Smaller steps: max_num_batched_tokens = 2048; this cuts the peak that is measured."),
    ),
    "chunked_prefill": (_("Chunked prefill, so that a long prompt comes in pieces."),),
    "enforce_eager": (_("Without CUDA graphs (enforce_eager): saves memory, a little slower."),),
    "tensor_parallel": (
        _("Spread the model over {cards} cards."),
        _("Spread the model over more cards (tensor_parallel_size)."),
    ),
    "quantise_or_tp": (
        _("A quantised checkpoint, or the model over {cards} cards."),
        _("A quantised checkpoint, or more cards (tensor_parallel_size)."),
    ),
    "cpu_offload": (_("Keep part of the weights in host memory (cpu_offload_gb)."),),
    "wait_until_quiet": (_("Wait until the card is quiet, then start again."),),
    "start_one_by_one": (_("Start servers that share a card one after another."),),
    "isolate_card": (_("Give the server a card of its own."),),
    "restart_server": (_("Restart the server."),),
    "upgrade_server": (_("Update the server; several versions had this as a bug."),),
    "sgl_fraction_up": (
        _("Raise {option} to {value}."),
        _("Raise mem_fraction_static by 0.02 to 0.05."),
    ),
    "sgl_fraction_down": (
        _("Lower {option} to {value}."),
        _("Lower mem_fraction_static by 0.05 to 0.1."),
    ),
    "sgl_chunked": (
        _("Lower {option} to {value}."),
        _("Lower chunked_prefill_size."),
    ),
    "sgl_conservative": (_("Raise schedule_conservativeness to 1.3."),),
    "sgl_graph_bs": (_("Capture fewer CUDA graphs (cuda_graph_max_bs), or none."),),
    "trt_fraction": (
        _("Lower {option} to {value}."),
        _("Lower kv_cache_free_gpu_memory_fraction to 0.8."),
    ),
    "fewer_gpu_layers": (_("Fewer layers on the GPU (-ngl)."),),
    "smaller_context": (_("A smaller context (-c, num_ctx)."),),
    "fewer_slots": (_("Fewer slots (--parallel)."),),
    "kv_quant": (_("A quantised KV cache (-ctk q8_0 -ctv q8_0 -fa)."),),
    "smaller_quant": (_("A smaller model, or a lower quantisation."),),
    "unload_models": (_("Unload other models (`ollama ps`)."),),
    # host memory, shared memory, files
    "fewer_workers": (
        _("{workers} DataLoader workers instead of {workers_before}."),
        _("Fewer DataLoader workers, a smaller prefetch_factor."),
    ),
    "stream_data": (_("Stream or map the data set; arrays instead of Python lists."),),
    "raise_container_limit": (_("A larger memory limit for the container or the instance."),),
    "check_kernel_log": (
        _("Look at the kernel log and the container's oom_kill counter at that second."),
    ),
    "slurm_mem": (_("Ask Slurm for more (--mem, --mem-per-gpu)."),),
    "ray_threshold": (_("Raise RAY_memory_usage_threshold a little."),),
    "ray_object_store": (_("A smaller object store, fewer actors."),),
    "chunk_arrays": (_("Work in pieces, in float32, or on a memory map."),),
    "load_to_gpu": (_('Load straight to the card (map_location="cuda", mmap=True).'),),
    "shard_checkpoints": (_("Use sharded checkpoints."),),
    "less_offload": (_("Offload less to the host."),),
    "spawn_workers": (_("Start workers by spawn or forkserver."),),
    "workers_first": (_("Start the workers before loading the data."),),
    "overcommit": (_("vm.overcommit_memory = 1, where it is your machine."),),
    "read_the_ranks_log": (_("Read this rank's own log: the others only tell that it was gone."),),
    "detach_what_is_kept": (
        _(
            "Keep numbers, not tensors: loss.item(), detach(), and no lists of outputs with their graph."
        ),
    ),
    "snapshot_memory": (
        _(
            "See what is held: torch.cuda.memory._record_memory_history() and a snapshot, or tracemalloc on the host."
        ),
    ),
    "restart_on_schedule": (
        _(
            "Until it is mended: checkpoint and start again before it is full ([restart], resume_args)."
        ),
    ),
    "register_key": (
        _("Put your public key on the instance again, on its page or in its authorized_keys."),
    ),
    "paste_new_address": (
        _(
            "Paste the ssh command that the platform shows now: `cockpit hosts add NAME … --replace`."
        ),
    ),
    "shm_size": (
        _(
            "More shared memory: --shm-size=16g or --ipc=host; on a rented container ask for it when it is made."
        ),
    ),
    "file_system_sharing": (_('torch.multiprocessing.set_sharing_strategy("file_system").'),),
    "no_workers_once": (_("Run once with num_workers=0 to see the error itself."),),
    "nofile_limit": (_("Raise the limit of open files: ulimit -n 65535."),),
    "nccl_shm_off": (_("NCCL_SHM_DISABLE=1 as a stopgap; it is slow."),),
    # ranks
    "compare_ranks": (_("Compare the sequence numbers of all ranks: the lowest one is at fault."),),
    "look_at_silent_rank": (
        _("Look for an OOM, an Xid or an exception on the rank that printed nothing."),
    ),
    "look_at_other_ranks": (_("Look at the other ranks' logs."),),
    "flight_recorder": (
        _("Run with TORCH_NCCL_TRACE_BUFFER_SIZE=2000 to get NCCL's flight recorder."),
    ),
    "earliest_rank": (_("Look at the rank that failed first; the others were stopped."),),
    "record_main": (
        _("Decorate main with torch.distributed.elastic's @record to get its traceback."),
    ),
    "leave_room_for_nccl": (_("Leave 1 to 2 GiB free on each card for NCCL."),),
    "nccl_last_error": (_("Read the line `Last error:` below it."),),
    "nccl_ifname": (_("Name the network card: NCCL_SOCKET_IFNAME."),),
    "memlock": (_("ulimit -l unlimited."),),
    "check_fabric": (_("Look at the network: link flaps, InfiniBand state."),),
    "master_reachable": (_("Check that MASTER_ADDR and its port can be reached from every node."),),
    "other_master_port": (_("Another --master-port, if this one is taken."),),
    "py_spy": (
        _("See where it stands: `py-spy dump --pid {pid}`, and the same on every rank."),
        _("See where it stands: `py-spy dump` on every rank."),
    ),
    "read_first_error": (_("Read the first exception above; this line only follows from it."),),
    "restart_run": (_("Start the run again."),),
    "resume_checkpoint": (_("Resume from the last good checkpoint."),),
    # CUDA, driver, environment
    "check_xid": (_("Look for an Xid in the kernel log at that second."),),
    "other_attention": (_("Try another attention backend."),),
    "other_block_config": (_("Another block size for that kernel."),),
    "matching_wheel": (_("Install the PyTorch build for this card and driver (its cuXXX index)."),),
    "older_wheel": (
        _("A build for an older CUDA; inside a container the driver cannot be changed."),
    ),
    "newer_driver": (_("A host with a newer driver."),),
    "update_driver": (_("Ask for a newer driver."),),
    "remove_compat": (_("Take cuda-compat out of LD_LIBRARY_PATH."),),
    "restart_host": (_("Restart the machine when its runs are done."),),
    "restart_instance": (
        _(
            "Stop and start the instance from the platform's page; first save what a stop would wipe."
        ),
    ),
    "reload_driver": (
        _("With root and no GPU program running: unload the nvidia modules and load them again."),
    ),
    "start_fabric_manager": (_("Start nvidia-fabricmanager in the driver's own version."),),
    "compute_mode": (_("Look at the compute mode: nvidia-smi -q -d COMPUTE."),),
    "visible_devices": (_("Check CUDA_VISIBLE_DEVICES and `nvidia-smi -L` inside the container."),),
    "reinstall_bnb": (_("Install a matching bitsandbytes, or set BNB_CUDA_VERSION."),),
    "hf_token": (_("Give HF_TOKEN (env.secrets) and accept the model's licence."),),
    "hf_xet": (_("HF_HUB_DISABLE_XET=1 when Xet is what stalls, or a mirror."),),
    "predownload": (_("Download before the run."),),
    "install_missing": (_("Install what is missing."),),
    "check_environment": (
        _("Check that the run uses the environment that you meant ([env] in the profile)."),
    ),
    "free_port": (
        _("Use another port: {port}."),
        _("Use another port."),
    ),
    # hardware
    "leave_card": (_("Leave this card out."),),
    "other_card": (_("Try another card: a fault that follows the card is hardware."),),
    "report_card": (
        _("Report it to the provider with the time and the line, and ask for the hours back."),
    ),
    "reset_at_next_stop": (_("Nothing now: reset the card when its runs are done."),),
    "nothing_to_do": (_("Nothing: it follows from something else, or is harmless."),),
    "recovery_action": (_("Do what the line itself names as recovery action."),),
    "fabric_log": (_("Read the fabric manager's log."),),
    "check_link": (_("Compare the PCIe width and speed with their maximum under load."),),
    "suspect_card": (_("If it is always the same rank, suspect its card."),),
    # disks
    "free_disk": (_("Free space: look at df -h and df -i."),),
    "keep_few_checkpoints": (_("Keep only the last checkpoints (save_total_limit = 2)."),),
    "other_volume": (
        _("Move the cache and temporary files to a larger volume (HF_HOME, TMPDIR)."),
    ),
    "verify_checkpoint": (_("Check the last checkpoint: it is probably cut off."),),
    "previous_checkpoint": (_("Use the checkpoint before."),),
    "download_again": (_("Download the file again."),),
    "check_mounts": (_("Look at the state of the volumes."),),
    "copy_off": (_("Copy checkpoints off now."),),
    # numbers
    "use_bf16": (_("bf16 instead of fp16."),),
    "lower_lr": (
        _("Learning rate {rate} instead of {rate_before}, a longer warm-up, gradient clipping."),
        _("A lower learning rate, a longer warm-up, gradient clipping."),
    ),
    "check_batch": (_("Look for a bad batch, for example with every label at -100."),),
    "check_checkpoint": (_("Check the weights for NaN."),),
    "fix_operation": (_("Mend the operation that is named."),),
    # memory over time
    "find_holder": (
        _("See who has the card open, with fuser -v /dev/nvidia* as root, and end what is yours."),
    ),
    "card_cooling": (_("Compare its temperature and fan with the other cards of the host."),),
    "compare_cards": (
        _("Run the same work on another card of the host, to see whether it follows the card."),
    ),
    "watch_memory": (_("Keep an eye on it; it closes by itself when use falls."),),
    **PULSE_REMEDIES,
    **SERVER_REMEDIES,
}
