"""A bucket of a store that speaks S3, by the standard library alone.

Each request has a deadline. A thread makes the request, so that no slow name server, handshake or
answer can hold us longer; its connection is not used again once it is late. What may pass (no
answer, 409, 429, 5xx) is tried again until the deadline. The rest fails at once.
"""

from __future__ import annotations

import hmac
import json
import os
import random
import re
import select
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from http.client import HTTPConnection, HTTPException
from threading import Thread
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from sigwrap.errors import ObjectsError, UsageError

Result = TypeVar("Result")

_LOOPBACK = re.compile(r"localhost|::1|127(\.[0-9]{1,3}){3}")
_REGION = re.compile(r"[a-z0-9-]{1,40}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_HOST = re.compile(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]+")
_PRINTED = re.compile(r"[!-~]{1,16384}")
_NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_MEMBERS = ("AccessKeyId", "SecretAccessKey", "SessionToken")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_LONGEST_CREDENTIAL = 1 << 16
_LARGEST_ANSWER, _LARGEST_UNSIZED = 1 << 30, 1 << 24
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&#39;": "'", "&amp;": "&"}


class Credentials(NamedTuple):
    key_id: str
    secret: str
    token: str


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def member(self, name: str, pattern: str = r"[^<]*") -> str:
        """Return what an XML element of this name has, or ""."""
        found = re.search(rf"<{name}>({pattern})</{name}>".encode(), self.body)
        return found[1].decode("utf-8", "replace") if found else ""


class Bucket:
    def __init__(
        self,
        bucket: str,
        prefix: str,
        environment: Mapping[str, str],
        timeout_s: float,
        credential_fd: int | None,
    ) -> None:
        """Raise ValueError if there can be no such bucket, UsageError for other settings."""
        if not _BUCKET.fullmatch(bucket):
            raise ValueError("that is no name of a bucket")
        parts = [each for each in prefix.split("/") if each]
        if not all(_PRINTED.fullmatch(each) and each not in (".", "..") for each in parts):
            raise ValueError("the prefix may have printable ASCII only, and neither . nor ..")
        self._prefix = "".join(f"{each}/" for each in parts)
        self._bucket = bucket
        self._timeout_s = timeout_s
        self._region = (
            environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
        )
        if not _REGION.fullmatch(self._region):
            raise UsageError("AWS_REGION: not a region", "such as AWS_REGION=eu-central-1")
        self.name = f"s3://{bucket}/{self._prefix}".rstrip("/")
        self._base, is_secure = f"/{bucket}", True
        if endpoint := (
            environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
        ):
            is_secure, self._host, self._port = _endpoint(endpoint)
            self.name += f" at {self._authority}"
        else:
            self._host, self._port = f"s3.{self._region}.amazonaws.com", None
            if "." not in bucket:  # a certificate's * covers one label
                self._host, self._base = f"{bucket}.{self._host}", ""
        self._credentials = (
            _from_environment(environment)
            if credential_fd is None
            else _from_descriptor(credential_fd, timeout_s)
        )
        self._connect = _https() if is_secure else HTTPConnection
        self._connection: HTTPConnection | None = None

    @property
    def _authority(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return host if self._port is None else f"{host}:{self._port}"

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def put_new(self, key: str, body: bytes) -> bool:
        # With it, no store keeps an empty object of a sender that was killed before the body:
        # SeaweedFS 4.48 did, with the signed digest alone.
        checksum = b64encode(sha256(body).digest()).decode()
        headers = {"if-none-match": "*", "x-amz-checksum-sha256": checksum}
        answer = self._ask("PUT", key, body=body, headers=headers, may_be=(200, 412))
        if answer.status == 200 and not answer.headers.get("etag"):
            raise ObjectsError(f"{self.name} does not answer as an S3 store", "check the endpoint")
        return answer.status == 200

    def get(self, key: str) -> bytes:
        return self._ask("GET", key).body

    def keys(self, prefix: str) -> Iterator[str]:
        query, seen = {"list-type": "2", "prefix": self._prefix + prefix}, {""}
        while True:
            answer = self._ask("GET", "", query=query)
            for found in re.findall(rb"<Key>([^<]*)</Key>", answer.body):
                yield _unescaped(found.decode("utf-8", "replace")).removeprefix(self._prefix)
            token = _unescaped(answer.member("NextContinuationToken"))
            if answer.member("IsTruncated") != "true" or token in seen:
                return
            seen.add(token)
            query["continuation-token"] = token

    def _ask(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        may_be: tuple[int, ...] = (200,),
    ) -> Answer:
        path = self._base + (quote("/" + self._prefix + key, safe="/-_.~") if key else "/")
        words = sorted((query or {}).items())
        asked = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in words)
        ends, pause, problem = time.monotonic() + self._timeout_s, _FIRST_PAUSE_S, "no answer"
        while (left := ends - time.monotonic()) > 0:
            connection = self._connection or self._connect(self._authority)
            self._connection = None
            try:
                signed = self._signed(method, path, asked, body, headers or {})
                target = path + (f"?{asked}" if asked else "")
                request = partial(_answered, connection, left, method, target, body, signed)
                answer = _within(left, request)
            except (OSError, HTTPException) as failure:
                problem = self._passing(failure)
            else:
                self._connection = connection
                if answer.status in may_be:
                    return answer
                problem = self._passing_refusal(answer, key)
            left = ends - time.monotonic()
            time.sleep(max(0.0, min(left, pause * random.uniform(0.5, 1))))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        raise ObjectsError(
            f"{self.name} gave no answer within {self._timeout_s:g} s: {problem}",
            "the next sigwrap ship goes on from here; --timeout gives it longer",
        )

    def _passing(self, failure: Exception) -> str:
        """Return what failed; raise ObjectsError if it will fail again."""
        if verified := getattr(failure, "verify_message", ""):
            raise ObjectsError(
                f"can't verify the certificate of {self._authority}: {verified}",
                "set $SSL_CERT_FILE to the certificates that you trust",
            ) from failure
        reason = failure.strerror if isinstance(failure, OSError) else ""
        return reason or str(failure) or type(failure).__name__

    def _passing_refusal(self, answer: Answer, key: str) -> str:
        """Return what the store refused; raise ObjectsError if it will refuse again."""
        status, code = answer.status, answer.member("Code", "[A-Za-z0-9.]{1,80}")
        shown = f"{status} {code}".strip()
        if status in (409, 429) or (status >= 500 and status != 501) or code == "RequestTimeout":
            return shown
        region = answer.headers.get("x-amz-bucket-region") or answer.member("Region")
        if code == "RequestTimeTooSkewed":
            theirs = answer.headers.get("date", "another time")
            message, hint = f"the clock is wrong: {self.name} has {theirs}", "set the clock"
        elif status in (301, 307, 400) and _REGION.fullmatch(region) and region != self._region:
            message = f"the bucket {self._bucket} is in the region {region}, not {self._region}"
            hint = f"set AWS_REGION={region}"
        elif status in (401, 403):
            message = f"{self.name} refuses the credential: {shown}"
            hint = "check the key, its end of validity and what it may do"
        elif status == 404 and code != "NoSuchKey":
            message = f"there is no bucket {self._bucket} at {self._authority}: {shown}"
            hint = "check --to and AWS_ENDPOINT_URL_S3"
        elif status == 404:
            message, hint = f"{self.name} has no object {key}", ""
        elif status == 501:
            message = f"{self.name} can't keep an object from being replaced: {shown}"
            hint = "use a store that supports If-None-Match: *"
        else:
            message, hint = f"{self.name} refuses: {shown}", "check --to and AWS_ENDPOINT_URL_S3"
        raise ObjectsError(message, hint)

    def _signed(
        self, method: str, path: str, query: str, body: bytes, headers: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the headers with a signature of version 4."""
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        digest = sha256(body).hexdigest()
        every = {
            **headers,
            "host": self._authority,
            "x-amz-content-sha256": digest,
            "x-amz-date": now,
        }
        if self._credentials.token:
            every["x-amz-security-token"] = self._credentials.token
        names = ";".join(sorted(every))
        lines = [f"{name}:{every[name]}" for name in sorted(every)]
        request = "\n".join([method, path, query, *lines, "", names, digest])
        scope = f"{now[:8]}/{self._region}/s3/aws4_request"
        signed = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{sha256(request.encode()).hexdigest()}"
        key = b"AWS4" + self._credentials.secret.encode()
        for part in (*scope.split("/"), signed):
            key = hmac.new(key, part.encode(), "sha256").digest()
        every["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._credentials.key_id}/{scope}, "
            f"SignedHeaders={names}, Signature={key.hex()}"
        )
        return every


def _answered(
    connection: HTTPConnection,
    left: float,
    method: str,
    target: str,
    body: bytes,
    headers: Mapping[str, str],
) -> Answer:
    connection.timeout = left
    if connection.sock is not None:
        connection.sock.settimeout(left)
    try:
        connection.request(method, target, body=body or None, headers=dict(headers))
        response = connection.getresponse()
        size = _LARGEST_UNSIZED if response.length is None else response.length
        if size > _LARGEST_ANSWER:
            raise HTTPException("the answer is too large")
        data = response.read(size)
        if not response.isclosed():
            raise HTTPException("the answer is not complete")
    except BaseException:
        connection.close()
        raise
    found = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, found, data)


def _within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return what the call does, in a thread that we wait for so long; TimeoutError after it."""
    results: list[Result] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as failure:
            failures.append(failure)

    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if failures:
        raise failures[0]
    if not results:
        raise TimeoutError("no answer")
    return results[0]


def _endpoint(url: str) -> tuple[bool, str, int | None]:
    """Return whether it has TLS, its host and its port."""
    hint = "such as https://s3.example.com, or http://127.0.0.1:8333"
    wrong = UsageError("AWS_ENDPOINT_URL: not the address of a store", hint)
    scheme, _, rest = url.rpartition("://")
    try:
        parts = urlsplit(f"//{rest}")
        host, port = parts.hostname or "", parts.port
    except ValueError:  # its text may hold a password
        raise wrong from None
    scheme = scheme.lower() or ("http" if _LOOPBACK.fullmatch(host) else "https")
    has_more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if scheme not in ("http", "https") or not _HOST.fullmatch(host) or has_more or port == 0:
        raise wrong
    return scheme == "https", host, port


def _https() -> Callable[[str], HTTPConnection]:
    try:
        import ssl
        from http.client import HTTPSConnection
    except ImportError as missing:
        raise ObjectsError(
            f"https needs OpenSSL, which can't be loaded: {missing}", "install libssl3"
        ) from missing
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return lambda authority: HTTPSConnection(authority, context=context)


def _from_environment(environment: Mapping[str, str]) -> Credentials:
    return _credentials([environment.get(name, "") for name in _NAMES], "the environment")


def _from_descriptor(fd: int, timeout_s: float) -> Credentials:
    where, ends, data = f"--credential-fd {fd}", time.monotonic() + timeout_s, b""
    poll = select.poll()
    try:
        poll.register(fd, select.POLLIN)
        while len(data) <= _LONGEST_CREDENTIAL:
            if not poll.poll(max(0.0, ends - time.monotonic()) * 1000):
                raise UsageError(f"{where}: no end of the JSON within {timeout_s:g} s")
            if not (piece := os.read(fd, _LONGEST_CREDENTIAL)):
                break
            data += piece
        os.close(fd)
    except (OSError, OverflowError, ValueError) as error:
        raise UsageError(f"{where}: can't be read", "give an open descriptor: 3<FILE") from error
    found = None
    with suppress(ValueError, RecursionError):
        found = json.loads(data)
    members = found if isinstance(found, dict) else {}
    return _credentials([members.get(name) or "" for name in _MEMBERS], where)


def _credentials(found: list[str], where: str) -> Credentials:
    """Return the credentials; no message ever shows one."""
    key_id, secret, token = (each if isinstance(each, str) else " " for each in found)
    if not all(map(_PRINTED.fullmatch, (key_id, secret, token or "-"))):
        raise UsageError(
            f"{where} has no credential for the bucket",
            f"set {_NAMES[0]} and {_NAMES[1]}, or give --credential-fd N with the JSON of a "
            "credential_process",
        )
    return Credentials(key_id, secret, token)


def _unescaped(text: str) -> str:
    for entity, character in _ENTITIES.items():
        text = text.replace(entity, character)
    return text


def endpoint_at(environment: Mapping[str, str]) -> tuple[bool, str] | None:
    """Return whether the store has TLS, and its host and port; None for AWS."""
    url = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if not url:
        return None
    is_secure, host, port = _endpoint(url)
    return is_secure, host if port is None else f"{host}:{port}"
