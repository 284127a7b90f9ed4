"""Who may do what: the tokens file, principals, and that no token is ever told."""

import hashlib
from pathlib import Path

import pytest

from quadriga.si.access import Access, AccessError, Principal, bearer_token
from tests.si.certificates import access_by, tokens_in

TOKEN = "correct-horse-battery"
HASH = hashlib.sha256(TOKEN.encode()).hexdigest()


def test_open_lets_everyone_do_everything() -> None:
    access = Access.open()
    assert access.is_open
    assert access.principal(None) == Principal("anonymous", True, None)
    assert access.principal("whatever", ["shim"]) == Principal("shim", True, None)
    access.reload()  # there is nothing to read


@pytest.mark.parametrize(
    "credential", [f"sha256:{HASH}", f"sha256:{HASH.upper()}", f"plain:{TOKEN}"]
)
def test_a_token_by_its_hash_or_itself(tmp_path: Path, credential: str) -> None:
    access = access_by(tmp_path, f"shim rm:a,rm:b {credential}  # the shim\n")
    assert not access.is_open
    found = access.principal(TOKEN)
    assert found == Principal("shim", False, frozenset({"a", "b"}))
    assert found.may_act_for("a")
    assert not found.may_act_for("c")
    for wrong in (None, "", TOKEN + "x", TOKEN[:-1], HASH, "\udcff", "x" * 10_000):
        assert access.principal(wrong) is None


def test_rights(tmp_path: Path) -> None:
    access = access_by(
        tmp_path,
        "\n# comment\n\n"
        "boss admin plain:token-of-the-boss\n"
        "any rm:* plain:token-of-anybody-\n"
        "eyes read plain:token-of-the-eyes\n",
    )
    assert access.principal("token-of-the-boss") == Principal("boss", True, None)
    anybody = access.principal("token-of-anybody-")
    assert anybody is not None
    assert anybody.may_act_for("whoever")
    assert not anybody.admin
    eyes = access.principal("token-of-the-eyes")
    assert eyes is not None
    assert not eyes.may_act_for("a")


def test_a_certificate_by_any_of_its_names(tmp_path: Path) -> None:
    access = access_by(tmp_path, "shim rm:a certificate:shim.example\n")
    assert access.principal(None, ["x", "shim.example"]) is not None
    assert access.principal(None, ["x"]) is access.principal("wrong", ["shim.example"]) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("shim admin", ":1: needs three words"),
        ("shim admin plain:a b", ":1: needs three words"),
        (f"ok admin plain:{TOKEN}\nshim root plain:{TOKEN}", ":2: right 'root'"),
        (f"shim rm: plain:{TOKEN}", "right 'rm:'"),
        ("shim admin plain:hunter2", "16 to 4096 characters"),
        ("shim admin sha256:hunter2", "64 hexadecimal digits"),
        ("shim admin hunter2", "credential is none of"),
        ("shim admin certificate:", "credential is none of"),
        ("# nothing", "has no credential"),
    ],
)
def test_what_is_wrong_is_named_without_a_token(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(AccessError) as found:
        access_by(tmp_path, text)
    assert problem in str(found.value) and "hunter2" not in str(found.value)
    assert TOKEN not in str(found.value)


def test_a_file_for_all_to_read_is_refused(tmp_path: Path) -> None:
    text = f"shim admin plain:{TOKEN}\n"
    for mode in (0o644, 0o620, 0o602):
        with pytest.raises(AccessError, match="chmod 0600"):
            Access.from_file(tokens_in(tmp_path, text, mode))
    Access.from_file(tokens_in(tmp_path, text, 0o640))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="No such file"):
        Access.from_file(tmp_path / "nothing")
    path = tokens_in(tmp_path, "")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(AccessError, match="not UTF-8"):
        Access.from_file(path)
    path.write_text("#" * (1 << 20) + "#")
    with pytest.raises(AccessError, match="longer than"):
        Access.from_file(path)
    path.write_text("\n" * 10_001)
    with pytest.raises(AccessError, match="more than 10000 lines"):
        Access.from_file(path)


def test_reloading_is_all_or_nothing(tmp_path: Path) -> None:
    path = tokens_in(tmp_path, f"shim admin plain:{TOKEN}\n")
    access = Access.from_file(path)
    path.write_text("shim admin\n")
    with pytest.raises(AccessError):
        access.reload()
    assert access.principal(TOKEN) is not None
    path.write_text("shim admin plain:another-token-of-it\n")
    access.reload()
    assert access.principal(TOKEN) is None
    assert access.principal("another-token-of-it") is not None


def test_no_repr_has_a_token(tmp_path: Path) -> None:
    access = access_by(tmp_path, f"shim admin plain:{TOKEN}\n")
    shown = repr(access) + repr(access.principal(TOKEN)) + repr(access._entries)
    for secret in (TOKEN, HASH, repr(bytes.fromhex(HASH))):
        assert secret not in shown
    assert repr(Access.open()) == "Access.open()"


@pytest.mark.parametrize(
    ("header", "token"),
    [(None, None), ("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("Basic abc", ""), ("", "")],
)
def test_the_token_of_a_header(header: str | None, token: str | None) -> None:
    assert bearer_token(header) == token
