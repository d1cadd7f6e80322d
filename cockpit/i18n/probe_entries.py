"""Sentences about what a connected host cannot show: no Python, no driver, a driver that does not fit."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.sentences import Entry

_STILL_LIVE: Final = _("CPU, disks and logs are live.")

PROBE_ENTRIES: Final[dict[str, Entry]] = {
    "no_python": Entry(
        (
            _("{host} has no Python 3.6 or newer, so we read nvidia-smi instead."),
            _("There is no Python 3.6 or newer, so we read nvidia-smi instead."),
        ),
        (
            _(
                "You see use, memory, temperature, power every 2 s; processes, Xid, ECC and throttling "
                "are missing, and runs have no supervisor."
            ),
            _("Looked for: {looked_for}."),
        ),
        (
            _("Install one (`apt-get install -y python3-minimal`, about 20 MB)"),
            _('or name one: `python = "/path"` under [hosts.{host}]'),
        ),
    ),
    "driver_mismatch": Entry(
        (
            _(
                "{host}: the driver was updated while the machine ran (kernel {kernel_version}, library "
                "{library_version}); GPU numbers are off until it restarts."
            ),
            _(
                "{host}: the driver was updated while the machine ran; GPU numbers are off until it restarts."
            ),
            _(
                "The driver was updated while the machine ran; GPU numbers are off until it restarts."
            ),
        ),
        (
            _("Programs already on the cards go on; new ones will not start."),
            _STILL_LIVE,
            _("Inside a container only the provider can do it."),
        ),
        (
            _(
                "Restart the machine when its runs are done, or, with root and no GPU program running: "
                "`rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && nvidia-smi`"
            ),
        ),
    ),
    "nvml_lost": Entry(
        (
            _('{host}: this container lost its GPUs ("{words}").'),
            _("{host}: this container lost its GPUs."),
            _("This container lost its GPUs."),
        ),
        (
            _(
                "Known cause: the provider reloaded systemd on the host, which takes the devices away "
                "from running containers."
            ),
            _("Runs that hold a card go on; new ones cannot get one."),
            _("Nothing inside repairs it: stop and start the instance from the platform's page."),
        ),
        (_("First save what a stop would wipe: `w` lists it."),),
    ),
    "no_driver": Entry(
        (_("{host} has no NVIDIA driver that answers."), _("No NVIDIA driver answers.")),
        (_("The driver's words: {words}."), _STILL_LIVE),
        (
            _(
                "A machine without a GPU is fine as it is; else load the driver, or start the container with its GPUs."
            ),
        ),
    ),
    "no_gpu": Entry(
        (_("{host} has a driver and no GPU."), _("There is a driver and no GPU.")),
        (_("AutoDL's no-GPU mode looks like this."), _STILL_LIVE),
    ),
    "no_nvml": Entry(
        (
            _("{host}: NVML cannot be read, so we read nvidia-smi instead."),
            _("NVML cannot be read, so we read nvidia-smi instead."),
        ),
        (
            _("The driver's words: {words}."),
            _("Processes, Xid, ECC and throttling may be missing."),
        ),
    ),
    "driver_hung": Entry(
        (_("{host}: the driver does not answer."), _("The driver does not answer.")),
        (_("Anything that asks it hangs, nvidia-smi too."), _STILL_LIVE),
        (_("Look for an Xid in the kernel log; restart the instance when its runs are done."),),
    ),
    "no_pynvml": Entry(
        (_("This installation lacks nvidia-ml-py, which is sent to hosts."),),
        (_("Hosts are read by nvidia-smi as long as it is missing."),),
        (_("Install cockpit again: `uv tool install --reinstall cluster-cockpit`"),),
    ),
    "probe": Entry(
        (_("The probe on {host} cannot do its work."), _("The probe cannot do its work.")),
        (_("It said: {said}."),),
    ),
    "probe_failed": Entry(
        (_("The probe on {host} ended at once."), _("The probe ended at once.")),
        (_("It said: {stderr}."), _("It said: {said}."), _("It is tried again.")),
    ),
    "probe_died": Entry(
        (
            _("The probe on {host} ended; it is started again."),
            _("The probe ended; it is started again."),
        )
    ),
    "probe_silent": Entry(
        (_("The probe on {host} said nothing for {limit_s} s."), _("The probe says nothing.")),
        (_("It is started again."),),
    ),
    "host_connected": Entry((_("Connected, and its samples are fresh."),)),
    "host_not_fresh": Entry(
        (
            _("{host} has not sent a sample lately; what is free may have changed."),
            _("The samples are old."),
        )
    ),
    "cards_free": Entry((_("Free cards found for it: {count}."), _("Free cards are there."))),
    "needs_version": Entry((_("{name} {found} is there; the profile needs {needed}."),)),
    "needs_version_unknown": Entry(
        (_("Whether {name} {needed} is there cannot be told."),),
    ),
    "needs_vram": Entry((_("The card has {found}; the profile needs {needed}."),)),
    "needs_vram_unknown": Entry((_("Whether the card has {needed} cannot be told."),)),
    "pipe_hides_code": Entry(
        (
            _(
                "`| tee` hides the exit code: a job that failed would count as done. The log is kept anyway."
            ),
        ),
        (),
        (_("Leave `| tee` out, or begin with `set -o pipefail` in bash."),),
    ),
    "mig_one_each": Entry(
        (
            _(
                "It gets {count} slices of MIG cards, and a program sees only the first slice that "
                "it is given: start one run for each."
            ),
        )
    ),
    "mig_no_tensor_parallel": Entry(
        (
            _(
                "Tensor parallel does not work across slices of MIG cards: they exchange nothing, "
                "and a program sees one of them."
            ),
        ),
        (),
        (_("One slice that is large enough, or whole cards: `--set gpus.count=1`."),),
    ),
    "cards_queued": Entry((_("No card is free now: it waits in the queue and starts by itself."),)),
    "launch_blocked": Entry((_("It cannot start like this."),)),
}
