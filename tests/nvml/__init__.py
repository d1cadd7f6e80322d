"""Doubles of the NVIDIA driver: libnvidia-ml.so.1 in C, nvidia-smi on the same scenario file."""
