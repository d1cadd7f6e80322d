"""Words for a server that serves badly: title, numbers, cause, remedies."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.sentences import N_ as _

SERVER_TITLES: Final[dict[str, str]] = {
    "kv_bound": _("Requests wait for room in the KV cache"),
    "kv_thrash": _("The server computes requests twice"),
    "queue_timeouts": _("Requests are late because they queue"),
    "queue_bound": _("Requests queue while the KV cache has room"),
    "engine_dead": _("The server's engine is dead behind its port"),
    "server_restarted": _("The server began anew"),
    "prefix_cold": _("The prefix cache went cold"),
    "model_reloads": _("A model is loaded again and again"),
}

SERVER_SUMMARIES: Final[dict[str, tuple[str, ...]]] = {
    "kv_cache": (
        _("{usual_pct} % of prompt tokens were in the cache, now {hit_pct} %"),
        _("{waiting} wait, {running} in work, KV cache {kv_pct} % full"),
        _("{preemptions_per_min} requests a minute put back"),
    ),
    "starved": (
        _("{queue_p95_s} of {e2e_p95_s} s in the queue, {waiting} wait, {running} in work"),
        _("{waiting} wait, {running} in work, KV cache {kv_pct} % full"),
        _("{waiting} wait, {running} in work"),
        _("loaded {times} times in {for_s} s"),
    ),
    "hang": (_("{running} requests in work, no token for {for_s} s"),),
    "crash": (
        _("no sound answer for {for_s} s"),
        _("{running} in work, {waiting} wait since then"),
    ),
}

SERVER_WHAT: Final[dict[str, tuple[str, ...]]] = {
    "kv_bound": (
        _(
            "The KV cache is {kv_pct} % full: {waiting} requests wait for room in it, {running} are in work."
        ),
        _("The KV cache is full, and requests wait for room in it."),
    ),
    "kv_thrash": (
        _(
            "{preemptions_per_min} requests a minute are put back and computed again; the KV cache is {kv_pct} % full."
        ),
        _("{preemptions_per_min} requests a minute are put back and computed again."),
    ),
    "prefix_cold": (
        _("Of the prompts' tokens {hit_pct} % are found in the cache, where {usual_pct} % were."),
    ),
}

SERVER_CAUSES: Final[dict[str, str]] = {
    "kv_bound": _(
        "More requests are in work than their tokens fit into the KV cache; use alone would be no trouble."
    ),
    "kv_thrash": _(
        "Running requests outgrow the KV cache, so the server drops some and computes their prompts again."
    ),
    "queue_timeouts": _(
        "Most of a request's time is the queue, not computation: clients give up before their turn comes."
    ),
    "queue_bound": _(
        "The server takes no more requests at once although its cache has room: its limit of requests or of tokens "
        "in a step is reached."
    ),
    "engine_dead": _(
        "The port takes connections, and what is behind it answers with errors or not at all: its engine has ended."
    ),
    "server_restarted": _(
        "Its counters began again from zero while its run went on: it ended inside, and something started it again."
    ),
    "prefix_cold": _(
        "Prompts are as long as before and less of them is found in the cache: it was emptied by a restart, crowded "
        "out by other prompts, or their beginnings changed."
    ),
    "model_reloads": _(
        "The model is dropped from memory between requests, and each one waits until it is loaded again: it is kept "
        "too short, or models take turns in too little room."
    ),
}

SERVER_REMEDIES: Final[dict[str, tuple[str, ...]]] = {
    "max_num_seqs_up": (
        _("More requests at once: {option} {before} -> {value}."),
        _("More requests at once: {option} = {value}."),
        _("More requests at once (max_num_seqs)."),
    ),
    "more_batched_tokens": (
        _("More tokens in a step: {option} {before} -> {value}."),
        _("More tokens in a step: {option} = {value}."),
        _("More tokens in a step (max_num_batched_tokens)."),
    ),
    "more_replicas": (_("A second server on another card, and a balancer before both."),),
    "limit_clients": (
        _("Let clients send fewer at once, and give them a time limit above the queue's."),
    ),
    "look_at_prompts": (
        _("Look at the prompts: what is common to them must stand at their beginning, unchanged."),
    ),
    "keep_model": (
        _("Keep the model in memory: keep_alive = {keep}."),
        _("Keep the model in memory (OLLAMA_KEEP_ALIVE, ttl)."),
    ),
    "more_loaded_models": (
        _("Let {value} models stay in memory at once (max_loaded_models), if they fit."),
        _("Ask for fewer different models, or let more of them stay in memory at once."),
    ),
}
