"""Sentences about reaching a host: keys, logins, links, and what a connected host cannot show."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.sentences import Entry

_NEW_ADDRESS: Final = _(
    "Look at the instance page: vast.ai and RunPod give a new port after each start; paste the new "
    "ssh command with `e`."
)
_NEXT_TRY: Final = _("Next try in {retry_s} s, `F5` now.")
_CHANGE_KEY: Final = _("`e` change user or key")

HOST_ENTRIES: Final[dict[str, Entry]] = {
    # host keys
    "host_key_unknown": Entry(
        (_("{hop_name}, the way to {host}, is new to cockpit."), _("{host} is new to cockpit.")),
        (
            _("Its key is {key_type} {fingerprint}."),
            _("No password or key of yours was used yet."),
            _(
                "Compare it with the platform's page, or run `ssh-keygen -lf "
                "/etc/ssh/ssh_host_ed25519_key.pub` in its web terminal."
            ),
        ),
        (
            _("`t` trust and connect · `esc` not now"),
            _("shell: `cockpit hosts trust {host} --hop {hop} --fingerprint {fingerprint}`"),
            _("shell: `cockpit hosts trust {host} --fingerprint {fingerprint}`"),
        ),
    ),
    "host_key_changed": Entry(
        (
            _(
                "{hop_name}, the way to {host}, answers with a different key than before; we did not connect."
            ),
            _("{host} answers with a different key than before; we did not connect."),
        ),
        (
            _("Known: {known}."),
            _("Now: {fingerprint}."),
            _(
                "On a rented box the usual reason is a new machine behind the same address, or a "
                "reinstall; the other reason is someone in between."
            ),
            _(
                "If you re-rented or reset it, check the new fingerprint on the platform's page, then "
                "replace the old key. If you did not, do not connect."
            ),
            _("Runs on it are not touched."),
        ),
        (
            _("`t` replace the old key"),
            _("shell: `cockpit hosts trust {host} --fingerprint {fingerprint}`"),
        ),
    ),
    "host_key_changed:revoked": Entry(
        (_("{host} answers with a key that is marked as revoked; we did not connect."),),
        (_("The mark stands in a known_hosts file. Runs on it are not touched."),),
    ),
    "host_key_changed:certificate": Entry(
        (_("{host} shows a certificate that does not count for it; we did not connect."),),
        (_("It said: {text}."),),
        (_("Trust the key itself: `cockpit hosts trust {host}`"),),
    ),
    "host_key_changed:mismatch": Entry(
        (
            _(
                "{host} offers another key than the fingerprint that was given; nothing was recorded."
            ),
        ),
        (_("Given: {known}."), _("Offered: {fingerprint}.")),
        (_("Compare both with the platform's page."),),
    ),
    # logins
    "auth_failed": Entry(
        (
            _("{hop_name}, the way to {host}, did not accept any key for {user}."),
            _("{host} did not accept any key for {user}."),
            _("{host} did not accept any key."),
        ),
        (
            _("Offered from the agent: {agent_keys} keys."),
            _("Offered: {files}."),
            _(
                "Usual reasons: the public key was added after the instance was made (restart it, or "
                "paste it into ~/.ssh/authorized_keys); another user name (AutoDL, vast.ai, RunPod: "
                "root; Lambda: ubuntu); the key belongs to another account."
            ),
        ),
        (_CHANGE_KEY, _("`:password` once, not stored"), _("public key to paste: `y`")),
    ),
    "auth_failed:no_keys": Entry(
        (_("There is no key to show to {host}: no agent answers and no key file was found."),),
        (_("Looked for: {missing_files}."),),
        (_CHANGE_KEY, _("`:password` once, not stored")),
    ),
    "auth_failed:passphrase_needed": Entry(
        (
            _("The key {locked_file} is locked by a passphrase."),
            _("A key is locked by a passphrase."),
        ),
        (_("{host} was not asked any further."),),
        (
            _(
                "Load it into the agent with `ssh-add {locked_file}`, or give the passphrase when asked."
            ),
        ),
    ),
    "auth_failed:password_refused": Entry(
        (_("{host} refused the password for {user}."), _("{host} refused the password.")),
        (_("It was not stored."),),
        (_CHANGE_KEY,),
    ),
    "auth_failed:declined": Entry(
        (_("No password was given, so {host} was not entered."),), (), (_CHANGE_KEY,)
    ),
    "auth_failed:too_many_tries": Entry(
        (_("{host} closed the door after too many keys."),),
        (_("The agent offered {agent_keys} keys; a server takes about 6."),),
        (_('Name the right key: `e`, or identity = "…" in hosts.toml.'),),
    ),
    "auth_failed:method_not_offered": Entry(
        (_("{host} takes no keys; it offers: {methods}."),),
        (),
        (_("`:password` once, not stored"),),
    ),
    # reach
    "unreachable": Entry(
        (
            _("No answer from {host} ({address}:{port}) for {timeout_s} s."),
            _("No answer from {host} ({address}:{port})."),
            _("No answer from {host}."),
        ),
        (
            _("Your network works: {other} answers."),
            _("So the instance is stopped, its port changed, or a firewall drops us."),
            _NEW_ADDRESS,
            _NEXT_TRY,
        ),
    ),
    "unreachable:refused": Entry(
        (
            _("{host} ({address}:{port}) refused the connection: the machine is up, no ssh there."),
            _("{host} refused the connection: the machine is up, no ssh there."),
        ),
        (
            _("After a start this lasts a minute. Else the port is another one now."),
            _NEW_ADDRESS,
            _NEXT_TRY,
        ),
    ),
    "unreachable:no_such_name": Entry(
        (
            _("No such name: {address}. {suggestion}?"),
            _("No such name: {address}."),
            _("{host} has no such name."),
        ),
        (_("Nothing was sent."),),
        (_("`e` change the address"),),
    ),
    "unreachable:no_route": Entry(
        (
            _("There is no way to {host} from here ({address}:{port})."),
            _("There is no way to {host} from here."),
        ),
        (_("This computer's network is down, or a VPN is missing."), _NEXT_TRY),
    ),
    "unreachable:no_banner": Entry(
        (_("{host} ({address}:{port}) takes connections and says nothing."),),
        (_("Something else listens there, or its sshd is overloaded."), _NEW_ADDRESS, _NEXT_TRY),
    ),
    "unreachable:login_timeout": Entry(
        (_("{host} began to talk and did not finish the login."),),
        (_("It is overloaded, or out of memory or disk."), _NEXT_TRY),
    ),
    "unreachable:not_ssh": Entry(
        (_("{host} ({address}:{port}) is not an ssh server."),),
        (_("It said: {text}."), _NEW_ADDRESS),
        (_("`e` change the port"),),
    ),
    "unreachable:busy": Entry(
        (
            _(
                "{host} closed the connection before the login: too many at once, or its sshd is restarting."
            ),
        ),
        (_NEXT_TRY,),
    ),
    "unreachable:login_lost": Entry(
        (_("{host} closed the connection in the middle of the login."),),
        (_("It said: {text}."), _NEXT_TRY),
    ),
    "unreachable:jump_refused": Entry(
        (
            _("{hop_name} does not let us through to {host}."),
            _("The jump host does not let us through to {host}."),
        ),
        (_("Its sshd forbids forwarding (AllowTcpForwarding)."),),
        (_("`e` change the jump"),),
    ),
    "unreachable:proxy_command": Entry(
        (_("The ProxyCommand for {host} ended."),),
        (_("It said: {text}."), _NEXT_TRY),
    ),
    "unreachable:bad_name": Entry(
        (
            _("{name} cannot be a host name; nothing was sent."),
            _("That cannot be a host name; nothing was sent."),
        )
    ),
    "unreachable:jump_loop": Entry(
        (_("The jumps go round in a circle: {jumps}."),), (), (_("`e` change the jump"),)
    ),
    "unreachable:no_shell": Entry((_("There is no /bin/sh on {host}."),), (_("It said: {text}."),)),
    "proxy_no_exec": Entry(
        (
            _(
                "ssh.runpod.io is RunPod's terminal proxy: it opens a shell for people, but runs no "
                "commands and copies no files, so cockpit cannot use it."
            ),
        ),
        (
            _('Use "SSH over exposed TCP" on the pod\'s Connect page.'),
            _(
                "If it is not there, the pod has no public port 22: edit the pod, expose TCP 22, start "
                "sshd (official templates do)."
            ),
        ),
        (_("`e` paste that command"),),
    ),
    "link_lost": Entry(
        (_("The connection to {host} is gone."),),
        (_("What runs there goes on."), _NEXT_TRY),
    ),
    "link_lost:keepalive": Entry(
        (_("{host} stopped answering."),), (_("What runs there goes on."), _NEXT_TRY)
    ),
    "link_lost:timeout": Entry(
        (_("{host} did not answer in {timeout_s} s."), _("{host} did not answer in time.")),
        (_("What runs there goes on."), _NEXT_TRY),
    ),
    "link_lost:max_sessions": Entry(
        (_("{host} opens no further session on this connection (MaxSessions)."),),
        (_("What runs there goes on."),),
    ),
    "protocol": Entry(
        (
            _("{host} sent something that we did not ask for; its connection was closed."),
            _("Something was sent that we did not ask for."),
        ),
        (_("Nothing of it was used. What runs there goes on."), _NEXT_TRY),
    ),
    "protocol:no_common_algorithm": Entry(
        (_("{host} and cockpit have no cipher in common."),),
        (_("Its sshd is very old. It said: {text}."),),
    ),
    "protocol:noise_too_long": Entry(
        (
            _("{host} prints without end before it does anything."),
            _("The login prints without end."),
        ),
        (_("A command in its ~/.bashrc or ~/.profile does not return."),),
        (_("Let them end early where there is no terminal: `[ -t 1 ] || return`."),),
    ),
    "protocol:no_sentinel": Entry(
        (_("{host} let us in and ran nothing."),),
        (_("It said: {text}."), _("Its account may be for logins by hand only.")),
    ),
    "protocol:login_takes_terminal": Entry(
        (_("{host} starts tmux or screen for every login, also where there is no terminal."),),
        (_("It said: {text}."),),
        (_("Put `[ -t 1 ] || return` before it in ~/.bashrc; on vast.ai: touch ~/.no_auto_tmux"),),
    ),
    "protocol:exec_refused": Entry(
        (_("{host} lets us in and runs no commands."),), (_("It said: {text}."),)
    ),
    "transport": Entry(
        (_("{host} could not be used."), _("The host could not be used.")), (_("It said: {text}."),)
    ),
    # link states
    "connecting": Entry((_("Connecting to {host}."), _("Connecting."))),
    "live": Entry((_("{host} is live."), _("Live."))),
    "stale": Entry(
        (
            _("{host} has not sent a sample for {age_s} s."),
            _("{host} has not sent a sample for a while."),
        ),
        (_("Its last values are shown grey."),),
    ),
    "no_sample": Entry((_("No sample for a while; the last values are shown grey."),)),
    "degraded": Entry((_("{host} is connected, without NVML."), _("Connected, without NVML."))),
    "host_key": Entry((_("{host} waits for you to look at its key."), _("A key waits for you."))),
    "disconnected": Entry(
        (_("{host} was disconnected by you."), _("Disconnected by you.")),
        (_("What runs there goes on."),),
        (_("`F5` connect again"),),
    ),
    "gone": Entry(
        (_("{host} is no longer in hosts.toml."), _("The host is no longer in hosts.toml."))
    ),
}
