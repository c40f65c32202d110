"""Signed policies: Ed25519 by the vectors of RFC 8032 and by openssl, the signature line, keys."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from sigwrap.errors import PolicyError, UsageError
from sigwrap.policy.ed25519 import verifies
from sigwrap.policy.signed import public_key, signed_text
from tests.support.programs import needs
from tests.support.signer import ORDER, SIGNER, Signer, challenge, pem, times_base

PRIME = 2**255 - 19
MESSAGE = b"version: 1\n"

# RFC 8032, 7.1: seed, public key, message, signature
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555"
        "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da0"
        "85ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac1"
        "8ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]

# Encodings of points of order 1, 2, 4 and 8, the last ones not canonical.
SMALL_ORDER = [
    *(1, PRIME - 1, 0, 1 << 255),
    *(
        int.from_bytes(bytes.fromhex(each), "little") + sign
        for each in (
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        )
        for sign in (0, 1 << 255)
    ),
    *(PRIME + 1, PRIME, 1 | 1 << 255, PRIME - 1 | 1 << 255, PRIME + 1 | 1 << 255, PRIME | 1 << 255),
]


@pytest.mark.parametrize("vector", VECTORS)
def test_the_vectors_of_the_rfc(vector: tuple[str, ...]) -> None:
    seed, public, message, signature = map(bytes.fromhex, vector)
    assert verifies(public, message, signature)
    assert (Signer(seed).public, Signer(seed).sign(message)) == (public, signature)
    for at in range(0, 512, 37):
        changed = (int.from_bytes(signature, "little") ^ 1 << at).to_bytes(64, "little")
        assert not verifies(public, message, changed), at
    assert not verifies(public, message + b"\0", signature)
    for wrong in (b"", signature[:63], signature + b"\0", signature[:32]):
        assert not verifies(public, message, wrong)
    for no_point in (b"", public[:31], public + b"\0", (2).to_bytes(32, "little")):
        assert not verifies(no_point, message, signature)


def test_no_second_signature_can_be_made_of_one() -> None:
    """S + L is the same scalar."""
    signature = SIGNER.sign(MESSAGE)
    scalar = int.from_bytes(signature[32:], "little")
    for more in range(1, 15):
        other = signature[:32] + (scalar + more * ORDER).to_bytes(32, "little")
        assert not verifies(SIGNER.public, MESSAGE, other), more


@pytest.mark.parametrize("number", SMALL_ORDER)
def test_a_key_of_small_order_verifies_nothing(number: int) -> None:
    """For a tenth of all messages, or for each, S·B is a signature by such a key."""
    key = number.to_bytes(32, "little")
    for scalar in range(1, 12):
        signature = times_base(scalar) + scalar.to_bytes(32, "little")
        assert not verifies(key, MESSAGE, signature)


def test_a_commitment_has_one_encoding() -> None:
    """Even the signer cannot use another one, which other programs may refuse."""
    for number, is_good in ((1, True), (PRIME + 1, False), (1 | 1 << 255, False)):
        commitment = number.to_bytes(32, "little")  # of the neutral point
        answer = challenge(commitment, SIGNER.public, MESSAGE) * SIGNER.scalar % ORDER
        signature = commitment + answer.to_bytes(32, "little")
        assert verifies(SIGNER.public, MESSAGE, signature) == is_good, number


@needs("openssl")
def test_a_policy_is_signed_by_openssl_as_the_hint_says(tmp_path: Path) -> None:
    """The hint that a policy without a signature gets is the command."""
    run = ["sh", "-euc"]
    make = "openssl genpkey -algorithm ed25519 -out KEY; openssl pkey -in KEY -pubout -out PUB"
    subprocess.run([*run, make], cwd=tmp_path, check=True)
    key = public_key((tmp_path / "PUB").read_bytes(), "PUB")
    for text in (b"name: x\n", b"no line end ", b"\xff\0\n" * 1000):
        (tmp_path / "FILE").write_bytes(text)
        with pytest.raises(PolicyError) as refused:
            signed_text(text, key, "FILE", "PUB")
        sign = refused.value.hint.removeprefix("to sign it: ")
        subprocess.run([*run, sign], cwd=tmp_path, check=True)
        data = (tmp_path / "FILE").read_bytes()
        signature = base64.b64decode(data.rpartition(b" ")[2])
        assert verifies(key, text, signature)
        assert not verifies(key, text + b" ", signature)
        (tmp_path / "text").write_bytes(text)
        (tmp_path / "sig").write_bytes(SIGNER.sign(text))
        (tmp_path / "ours").write_bytes(pem(SIGNER.public))
        check = "openssl pkeyutl -verify -rawin -pubin -inkey ours -in text -sigfile sig"
        subprocess.run([*run, check], cwd=tmp_path, check=True, capture_output=True)


def text_of(data: bytes) -> str:
    return signed_text(data, SIGNER.public, "policy", "key")


def test_the_last_line_signs_all_before_it() -> None:
    signature = base64.b64encode(SIGNER.sign(MESSAGE))
    for line in (signature, signature + b"\r\n\n", signature[:76] + b"\n" + signature[76:]):
        assert text_of(MESSAGE + b"# signature: " + line) == MESSAGE.decode()
    twice = SIGNER.signed(SIGNER.signed(MESSAGE))
    assert text_of(twice) == SIGNER.signed(MESSAGE).decode()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "policy: it is not signed"),
        (MESSAGE, "policy: it is not signed"),
        (SIGNER.signed(MESSAGE).replace(b"1", b"2", 1), "not by the key in key"),
        (b" " + SIGNER.signed(MESSAGE), "not by the key in key"),
        (SIGNER.signed(MESSAGE) + b"extends: ci\n", "not by the key in key"),
        (SIGNER.signed(MESSAGE)[:-3], "not by the key in key"),
        (Signer(bytes(32)).signed(MESSAGE), "not by the key in key"),
        (MESSAGE + b"# signature: \n", "not by the key in key"),
        (MESSAGE + b"# signature: \xff\xfe=\n", "not by the key in key"),
        (SIGNER.signed(b"\xff"), "policy: not UTF-8"),
    ],
)
def test_another_text_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        text_of(data)


def test_a_key_is_pem_with_or_without_line_ends() -> None:
    for content in (pem(SIGNER.public), b" " + pem(SIGNER.public).replace(b"\n", b"\r\n") + b"\n"):
        assert public_key(content, "key") == SIGNER.public


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\xff" * 32, bytes(32), b"00" * 32, base64.b64encode(bytes(32)), pem(b"")),
        pem(bytes(31)),
        pem(bytes(32), "302a300506032b656e032100"),  # X25519
        b"-----BEGIN PUBLIC KEY-----",
        b"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----\n",
    ],
)
def test_what_is_no_public_key_is_refused(content: bytes) -> None:
    with pytest.raises(UsageError, match=r"^--policy-key key: (not a public|it is a private)"):
        public_key(content, "key")
