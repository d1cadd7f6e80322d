from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.config.document import MAX_BYTES, dotted, parse_document, read_document
from cockpit.errors import ConfigError, ProfileError, StorageError


def refused(content: bytes) -> tuple[str, int | None]:
    with pytest.raises(ConfigError) as caught:
        parse_document(content, "x.toml")
    (problem,) = caught.value.problems
    assert problem.file == "x.toml"
    return problem.code, problem.line


def test_a_syntax_error_has_its_line() -> None:
    assert refused(b"a = 1\nb = \n") == ("toml_syntax", 2)
    assert refused(b"a = 1\na = 2\n") == ("toml_syntax", 2)
    assert refused(b"a = [\n1,\n") == ("toml_syntax", 3)


def test_what_is_no_text_has_its_line() -> None:
    assert refused(b"a = 1\nb = '\xff'\n") == ("not_utf8", 2)


def test_a_bomb_is_a_mistake_and_no_crash() -> None:
    assert refused(b"a = " + b"[" * 100_000)[0] == "toml_syntax"
    assert refused(b"#" * (MAX_BYTES + 1)) == ("file_too_large", None)
    assert refused(b"a = 1\nb = " + b"9" * 5_000) == ("toml_syntax", 2)


def test_a_byte_order_mark_is_no_mistake() -> None:
    assert parse_document(b"\xef\xbb\xbfa = 1\n", "x.toml").data == {"a": 1}


def test_the_error_is_of_the_class_that_was_asked_for() -> None:
    with pytest.raises(ProfileError):
        parse_document(b"a", "x.toml", ProfileError)


def test_a_file_that_cannot_be_read_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        read_document(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_document(tmp_path / "missing.toml")


def test_paths_are_written_as_set_takes_them() -> None:
    assert dotted(("a", "b c", 2, "d")) == 'a."b c"[2].d'


def test_a_key_without_end_is_cut() -> None:
    assert len(dotted(("a", "k" * 100_000))) < 80


def test_a_file_of_someone_else_says_nothing_to_the_terminal() -> None:
    content = b'"\\u001b]0;x\\u0007" = 1\n"a\\u202eb" = 2\n'
    document = parse_document(content, "x.toml")
    document.table((), document.data, {})
    shown = "".join(problem.key for problem in document.problems)
    assert [char for char in shown if char in "\x1b\x07\u202e"] == []
