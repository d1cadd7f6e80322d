"""Foreign messages as one harmless line; apart from `failures`, which needs asyncssh."""

from __future__ import annotations

from cockpit.domain.text import safe_line

TEXT_LIMIT = 200


def brief(text: object) -> str:
    return safe_line(str(text))[:TEXT_LIMIT]
