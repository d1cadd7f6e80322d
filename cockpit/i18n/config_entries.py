"""Sentences about what a person wrote: a pasted ssh line, hosts.toml, a profile, the command line."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.sentences import Entry

NOTHING_RECORDED: Final = _("Nothing was recorded.")

ENTRIES: Final[dict[str, Entry]] = {
    "command_line": Entry((_("{problem}"),), (), (_("{usage}"),)),
    "not_built": Entry(
        (_("`{command}` is not part of this version yet."),),
        (_("Nothing was done."),),
        (_("`cockpit --help` lists what is."),),
    ),
    # a pasted ssh line
    "pasted_empty": Entry(
        (_("There is nothing to read."),),
        (NOTHING_RECORDED,),
        (_("Paste the ssh command from the platform's page, in quotes."),),
    ),
    "pasted_too_long": Entry(
        (_("That is longer than {limit} characters; an ssh command is one line."),),
        (NOTHING_RECORDED,),
    ),
    "pasted_control_character": Entry(
        (_("The line holds {character}, which no ssh command needs."),),
        (_("A line break or an invisible character came along with the copy."), NOTHING_RECORDED),
        (_("Copy one line, without the line below it."),),
    ),
    "pasted_operator": Entry(
        (_("`{operator}` joins commands; only the ssh command itself is taken."),),
        (_("It stands before: {word}."), NOTHING_RECORDED),
        (_("Paste the part with ssh alone. A placeholder such as <port> needs its number."),),
    ),
    "pasted_substitution": Entry(
        (_("The line would run a command on this computer: {word}."),),
        (NOTHING_RECORDED,),
        (_("Paste the line with the value itself in its place."),),
    ),
    "pasted_variable": Entry(
        (_("{word} is a variable of a shell; its value is not known here."),),
        (NOTHING_RECORDED,),
        (_("Paste the line with the value itself in its place."),),
    ),
    "pasted_unfinished": Entry(
        (_("A quote is opened and not closed: {word}"), _("A quote is opened and not closed.")),
        (NOTHING_RECORDED,),
    ),
    "pasted_another_program": Entry(
        (_("`{word}` is not ssh."), _("That is not an ssh command.")),
        (NOTHING_RECORDED,),
        (_("Paste a command such as `ssh -p 41234 root@203.0.113.5`; for an alias, `ssh {word}`."),),
    ),
    "pasted_no_host": Entry((_("No host yet."),), (NOTHING_RECORDED,)),
    "pasted_bad_host": Entry(
        (_("{word} is not a host name or an address."), _("The host name is empty.")),
        (NOTHING_RECORDED,),
    ),
    "pasted_bad_user": Entry(
        (_("{word} is not a user name."), _("The user name is empty.")), (NOTHING_RECORDED,)
    ),
    "pasted_bad_port": Entry(
        (_("{word} is not a port: 1 to 65535."), _("The port is empty.")), (NOTHING_RECORDED,)
    ),
    "pasted_bad_jump": Entry((_("{word} has more jumps than we take."),), (NOTHING_RECORDED,)),
    "pasted_bad_forward": Entry(
        (_("{word} is not a forward such as 8080:localhost:8080."),), (NOTHING_RECORDED,)
    ),
    "pasted_password_in_url": Entry(
        (_("The address holds a password; cockpit keeps none in a file."),),
        (NOTHING_RECORDED,),
        (_("Leave it out: it is asked for when the host wants one."),),
    ),
    "pasted_refused_option": Entry(
        (_("{option} would run or load something on this computer, so it is not taken."),),
        (_("It stands in: {word}."), NOTHING_RECORDED),
        (_("For a way through another host use -J, or an alias of ~/.ssh/config by its name."),),
    ),
    "pasted_missing_value": Entry((_("{option} has no value."),), (NOTHING_RECORDED,)),
    "pasted_unknown_option": Entry((_("ssh knows no option {word}."),), (NOTHING_RECORDED,)),
    # hosts.toml by command
    "bad_host_name": Entry(
        (_("{name} cannot name a host."),),
        (_("A name starts with a letter or a digit; then letters, digits, `.`, `_` and `-`."),),
    ),
    "bad_profile_name": Entry(
        (_("{name} cannot name a profile."),),
        (_("A name starts with a letter or a digit; then letters, digits, `.`, `_` and `-`."),),
    ),
    "host_exists": Entry(
        (_("There is a host {host} already; it stays as it was."),),
        (),
        (_("Give it the new address with --replace."),),
    ),
    "host_unknown": Entry(
        (_("There is no host {host}. {suggestion}?"), _("There is no host {host}.")),
        (_("Known: {known}."),),
    ),
    "host_is_jump": Entry(
        (_("{host} is the way to {hosts}; it was not removed."),),
        (),
        (_("Change their jump first."),),
    ),
    "import_nothing": Entry((_("{source} holds no host to import."),)),
    "import_missing": Entry((_("{source} is not there."),)),
    # files
    "bad_config": Entry(
        (
            _("{file} has {several} mistakes; nothing was done."),
            _("{file} has a mistake; nothing was done."),
        )
    ),
    "bad_profile": Entry(
        (
            _("{file} has {several} mistakes; nothing was started."),
            _("{file} has a mistake; nothing was started."),
            _("{name} has a mistake; nothing was started."),
            _("The profile has a mistake; nothing was started."),
        )
    ),
    "profile_unknown": Entry(
        (
            _("There is no profile {name}; nothing was started. {suggestion}?"),
            _("There is no profile {name}; nothing was started."),
        ),
        (_("Looked in: {looked}."),),
        (_("`cockpit profile list` shows them. A path needs a `/` or ends in .toml."),),
    ),
    "profile_missing": Entry((_("There is no file {path}; nothing was started."),)),
    "profile_exists": Entry(
        (_("{path} exists and stays as it was."),), (), (_("Overwrite it with --replace."),)
    ),
    "kind_unsupported": Entry(
        (_("Profiles of kind {kind} cannot be started by this version yet."),),
        (_("Nothing was started."),),
        (_("Until then: kind = \"command\" with the same command line."),),
    ),
}  # fmt: skip

PROBLEMS: Final[dict[str, tuple[str, ...]]] = {
    "unknown_key": (_("no such key. {suggestion}?"), _("no such key")),
    "missing_key": (_("is missing: {hint}"), _("is missing")),
    "missing_table": (_('needs a table [{kind}]'),),
    "other_kind": (_('belongs to kind = "{other}"; this profile is of kind "{kind}"'),),
    "wrong_type": (_("not {expected}"),),
    "not_one_of": (_("none of {allowed}. {suggestion}?"), _("none of {allowed}")),
    "out_of_range": (_("not between {low} and {high}"),),
    "empty": (_("is empty"),),
    "bad_addresses": (_("needs a list of addresses such as ntfy://topic, each of them text"),),
    "too_long": (_("longer than {limit} characters"),),
    "control_character": (_("holds {character}, a control character"),),
    "bad_name": (_("a name starts with a letter or a digit; then letters, digits, . _ and -"),),
    "bad_host": (_("not a host name or an address"),),
    "bad_user": (_("not a user name"),),
    "bad_jump": (_("not a host of this file, an ssh alias or user@host:port"),),
    "bad_variable": (_("{name} is not the name of an environment variable"),),
    "bad_version": (_('not a version condition such as ">=2.4"'),),
    "bad_pattern": (_("not a regular expression: {why}"),),
    "bad_url": (_('neither a path such as "/metrics" nor an http address of the host itself'),),
    "bad_port_key": (_("a port of this computer, 1 to 65535, stands before the ="),),
    "time_needs_unit": (_('a time needs a unit, such as "{example}"'),),
    "not_a_time": (_('not a time such as "{example}"'),),
    "size_needs_unit": (_('a size needs a unit, such as "{example}"'),),
    "not_a_size": (_('not a size such as "{example}"'),),
    "not_a_price": (_('not a price such as "{example}"'),),
    "price_needs_currency": (_('a price needs a currency, such as "{example}"'),),
    "price_needs_hour": (_('a price is for an hour, such as "{example}"'),),
    "toml_syntax": (_("not TOML: {why}"),),
    "not_utf8": (_("not UTF-8 text"),),
    "file_too_large": (_("larger than {limit} bytes"),),
    "no_way_to_host": (_('needs ssh = "ssh …", host = "…" or local = true'),),
    "local_and_remote": (_("this machine (local = true) is not reached by SSH"),),
    "jump_circle": (_("the jumps go in a circle: {circle}"),),
    "jump_is_local": (_("{hop} is this machine and cannot be a jump"),),
    "too_many_hops": (_("more than {limit} hops"),),
    "not_both": (_("either this or {other}, not both"),),
    "one_of_keys": (_("needs one of {keys}"),),
    "needs_key": (_("needs {other} as well"),),
    "too_few_hosts": (_("names {count} hosts; nodes = {needed}"),),
    "one_host_only": (_("kind {kind} runs on one host; for several use torchrun"),),
    "one_host_key": (_("it names cards of one host; with `nodes` use [gpus] or num_gpus"),),
    "profile_host_unknown": (_("there is no host {host} in hosts.toml"),),
    "not_a_table": (_("{other} is a value and has no keys"),),
    "bad_override": (_("not key=value, such as gpus.count=2"),),
}  # fmt: skip
"""What is wrong with a key. The line that it stands in begins with the key and, where known, `= given`."""

NOTICES: Final[dict[str, tuple[str, ...]]] = {
    "dropped_host_key_check": (
        _("{text} is left out: cockpit always checks host keys, in its own list."),
    ),
    "dropped_agent_forwarding": (_("{text} is left out: your agent is never forwarded."),),
    "dropped_x11": (_("{text} is left out: no X11."),),
    "dropped_remote_forward": (_("{text} is left out: no port of yours is opened to the host."),),
    "dropped_other_forward": (_("{text} is left out: only -L forwards are used."),),
    "dropped_socket_forward": (_("{text} is left out: only ports are forwarded."),),
    "dropped_bind_address": (_("{text} is left out: forwards listen on 127.0.0.1 only."),),
    "dropped_terminal": (_("{text} is left out: cockpit asks for a terminal where it needs one."),),
    "dropped_no_command": (_("{text} is left out: it has no meaning here."),),
    "dropped_remote_command": (_("the command after the host is left out: {text}"),),
    "dropped_second_identity": (_("{text} is left out: one key file a host."),),
    "dropped_not_needed": (_("{text} is left out: not needed here."),),
    "key_file_missing": (
        _("{path} is not on this computer; ~/.ssh has {found}."),
        _("{path} is not on this computer."),
    ),
    "forward": (_("port {listen} of this computer will lead to {to} as the host sees it."),),
}  # fmt: skip

EXPECTED: Final = (
    _("a table"),
    _("a table such as 8000 = 8000"),
    _("a list"),
    _("text"),
    _("true or false"),
    _("a whole number"),
    _("a number"),
    _("one of the words"),
    _("what it should be"),
    _('a length such as 8192 or "32k"'),
    _('a size, such as "20 GiB"'),
    _('a time, such as "15s"'),
    _('a price, such as "0.42 USD/h"'),
    _('an amount, such as "5 USD"'),
)
"""What `wrong_type` may have expected, as the readers of settings and profiles name it."""
