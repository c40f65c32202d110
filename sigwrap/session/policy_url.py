"""A policy by URL: signed with a key that the user names, and kept for when no server answers.

The key proves the text; `sequence` and `expires` in it prove that it is no old one. The store has a
copy of the last accepted policy, with its signature. It is also the memory of its sequence: a
process that can write to the store can remove the copy or put an older one there, which is good
until it expires, but cannot make one.

A process of its own asks the server. So the kernel can end it in time, whatever it waits for, and
the supervisor holds neither a TLS library nor a connection.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import closing, suppress

from sigwrap.bare import NamedTuple, NoReturn, blake2b, signal
from sigwrap.errors import PolicyError, SigwrapError
from sigwrap.events import Payload
from sigwrap.https import Address, Client, NoAnswer, read_address
from sigwrap.kernel import libc
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.descriptors import open_plain_file
from sigwrap.log.folder import private_folder
from sigwrap.policy import SHIPPED
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import MAX_TEXT_CHARACTERS, Source
from sigwrap.policy.signed import public_key, signed_text
from sigwrap.session.launch import Tell
from sigwrap.session.settings import RunSettings
from sigwrap.start.policy_files import find_base, load_with_sources, with_sources

_WITHIN_S = 10  # for the whole answer
_LONGEST = 4 * MAX_TEXT_CHARACTERS
_FOLDER = "policies"

Loaded = tuple[Policy, tuple[Source, ...]]


def load_by_url(
    settings: RunSettings,
    environment: Mapping[str, str],
    store: str,
    variables: Mapping[str, str],
    tell: Tell,
) -> tuple[Policy, tuple[Source, ...], Payload]:
    """Return the policy, its texts, and for the first event where it is from."""
    address = read_address(settings.policy, "--policy")
    remote = _Remote(address, _read_key(settings.policy_key), settings.policy_key, variables)
    fallback = None
    if settings.policy_fallback:  # at each start: a mistake in it must not wait for an outage
        fallback = load_with_sources(settings.policy_fallback, variables=variables)
    copy = os.path.join(store, _FOLDER, remote.name_of_copy)
    origin = {"policy_url": str(address), "policy_from": "server"}
    try:
        data = _fetched(address, environment)
    except NoAnswer as why:
        what = f"cannot get the policy {address}: {why}"
    else:
        found, kept = remote.read(data), _read_copy(copy)
        if data != kept:
            remote.refuse_older(found[0], kept)
            _keep(copy, data, tell)
        return *found, origin
    try:
        if not (kept := _read_copy(copy)):
            raise PolicyError("there is none")
        found = remote.read(kept)
    except PolicyError as unusable:
        what = f"{what}; no usable copy of an earlier answer: {unusable.lines[0]}"
        if fallback is None:
            how = "try again; --policy-fallback names a policy for this case"
            raise PolicyError(what, how) from unusable
        tell(f"{what}: --policy-fallback {settings.policy_fallback} is used")
        return *fallback, origin | {"policy_from": "fallback"}
    known = f"sequence {found[0].sequence}, expires {found[0].expires}"
    tell(f"{what}: the copy of an earlier answer is used ({known})")
    return *found, origin | {"policy_from": "copy"}


class _Remote(NamedTuple):
    address: Address
    key: bytes
    key_file: str
    variables: Mapping[str, str]

    @property
    def name_of_copy(self) -> str:
        """Return a name by key and URL, without its user and password, which may change."""
        parts = (self.key.hex(), self.address.authority, self.address.target)
        return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest() + ".yaml"

    def read(self, data: bytes, *, may_be_expired: bool = False) -> Loaded:
        """Return the policy and its texts. Raises PolicyError."""
        name = str(self.address)
        source = Source(name, signed_text(data, self.key, name, self.key_file))
        policy, sources = with_sources(source, variables=self.variables, find_base=_find_shipped)
        if not policy.sequence or not policy.expires:
            why = f"{name}: a policy by URL needs the keys sequence and expires"
            raise PolicyError(why, "add them, and sign it again")
        if time.strftime("%Y-%m-%d", time.gmtime()) > policy.expires and not may_be_expired:
            why = f"{name}: it expired at the end of {policy.expires} (UTC)"
            raise PolicyError(why, "sign it again with a later date")
        return policy, sources

    def refuse_older(self, policy: Policy, kept: bytes) -> None:
        try:
            last = self.read(kept, may_be_expired=True)[0].sequence
        except PolicyError:  # it was removed or changed, or this version does not know a key
            return
        if policy.sequence < last:
            raise PolicyError(
                f"{self.address}: sequence {policy.sequence} is lower than {last}, which was "
                "accepted before",
                "the server may repeat an old policy; a new one needs a higher sequence",
            )


def _find_shipped(name: str, source: Source) -> Source | None:
    if name not in SHIPPED:
        why = f"{source.name}: a policy by URL can only extend a shipped policy, not {name!r}"
        raise PolicyError(why, f"shipped policies: {', '.join(SHIPPED)}")
    return find_base(name, source)


def _read_key(file: str) -> bytes:
    try:
        with open_plain_file(file) as opened:
            content = opened.read(_LONGEST)
    except OSError as failure:
        raise PolicyError(f"--policy-key {file}: {failure.strerror}") from failure
    return public_key(content, file)


def _read_copy(path: str) -> bytes:
    """Return what is there, which may be anything; nothing if it cannot be read."""
    with suppress(OSError), open_plain_file(path) as file:
        return file.read(_LONGEST + 1)
    return b""


def _keep(path: str, data: bytes, tell: Tell) -> None:
    def write(fd: int) -> None:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)

    try:
        with closing(private_folder(os.path.dirname(path))) as folder:
            os.close(folder.put_new(os.path.basename(path), write))
    except OSError as failure:
        tell(f"cannot keep a copy of the policy in {path}: {failure.strerror}")


def _fetched(address: Address, environment: Mapping[str, str]) -> bytes:
    """Raises NoAnswer."""
    ours, theirs = os.pipe()
    pid = linux_process.fork()
    if pid == 0:
        _ask(address, environment, theirs)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        sent: bytes = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == -signal.SIGALRM:
        raise NoAnswer(f"no complete response within {_WITHIN_S} s")
    if status:
        raise NoAnswer(sent.decode("utf-8", "replace") or "the process that asks has failed")
    return sent


def _ask(address: Address, environment: Mapping[str, str], to: int) -> NoReturn:
    """Send the answer with status 0, or the reason why there is none."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        signal.alarm(_WITHIN_S)
        libc.set_process_name(b"sigwrap-policy")  # no supervisor for the kill switch
        try:
            answer, status = Client(address, environment, _LONGEST).get(), 0
        except SigwrapError as failure:
            answer, status = failure.message.encode("utf-8", "replace"), 1
        with open(to, "wb") as pipe:
            pipe.write(answer)
        os._exit(status)
    finally:
        os._exit(1)
