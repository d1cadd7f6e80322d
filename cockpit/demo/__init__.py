"""The embedded fleet: loopback SSH hosts with simulated GPUs behind the same code as real ones."""
