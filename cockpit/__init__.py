"""cockpit: one terminal for rented GPUs, over SSH, with nothing installed on the hosts."""

__version__ = "0.1.0"
