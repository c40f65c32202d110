"""A bucket of a store that speaks S3, by the standard library alone.

What may pass (no answer, 409, 429, 5xx) is tried again until the deadline. The rest fails at once.
"""

from __future__ import annotations

import hmac
import json
import re
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote

from sigwrap.errors import ObjectsError, UsageError
from sigwrap.fleet.http import (
    Address,
    Answer,
    Request,
    Server,
    parsed,
    verifying_context,
    within,
)

_REGION = re.compile(r"[a-z0-9-]{1,40}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PRINTED = re.compile(r"[!-~]{1,16384}")
_NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_MEMBERS = ("AccessKeyId", "SecretAccessKey", "SessionToken")
_LONGEST_CREDENTIAL = 1 << 16


class Credentials(NamedTuple):
    key_id: str
    secret: str
    token: str


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
        self._bucket, self._prefix = bucket, "".join(f"{each}/" for each in parts)
        self._timeout_s = timeout_s
        self._region = region_in(environment)
        self.name = f"s3://{bucket}/{self._prefix}".rstrip("/")
        self._base = f"/{bucket}"
        address = Address(True, f"s3.{self._region}.amazonaws.com")
        if (endpoint := endpoint_at(environment)) is not None:
            address = endpoint
            self.name += f" at {address.authority}"
        elif "." not in bucket:  # a certificate's * covers one label
            address, self._base = Address(True, f"{bucket}.s3.{self._region}.amazonaws.com"), ""
        self._host = address.authority
        self._credentials = _credentials(environment, credential_fd, timeout_s)
        context = verifying_context() if address.is_secure else None
        self._server = Server(address, self.name, context)

    def close(self) -> None:
        self._server.close()

    def put_new(self, key: str, body: bytes) -> bool:
        made = partial(self._signed, self._base + quote(f"/{self._prefix}{key}", "/-_.~"), body)
        answer = self._server.ask(made, self._why_again, time.monotonic() + self._timeout_s)
        if answer.status == 200 and not answer.headers.get("etag"):
            raise ObjectsError(f"{self.name} does not answer as an S3 store", "check the endpoint")
        return answer.status == 200

    def _why_again(self, answer: Answer) -> str:
        """Return what it could not do now, or nothing; raise ObjectsError for a refusal."""
        if answer.status in (200, 412):
            return ""
        status, code = answer.status, _member(answer, "Code", "[A-Za-z0-9.]{1,80}")
        shown = f"{status} {code}".strip()
        if status in (409, 429) or (status >= 500 and status != 501) or code == "RequestTimeout":
            return shown
        region = answer.headers.get("x-amz-bucket-region") or _member(
            answer, "Region", "[a-z0-9-]{1,40}"
        )
        if code == "RequestTimeTooSkewed":
            theirs = answer.headers.get("date", "another time")
            message, hint = f"the clock is wrong: {self.name} has {theirs}", "set the clock"
        elif status in (301, 307, 400) and _REGION.fullmatch(region) and region != self._region:
            message = f"the bucket {self._bucket} is in the region {region}, not {self._region}"
            hint = f"set AWS_REGION={region}"
        elif status in (401, 403):
            message = f"{self.name} refuses the credential: {shown}"
            hint = "check the key, its end of validity and what it may do"
        elif status == 501:
            message = f"{self.name} can't keep an object from being replaced: {shown}"
            hint = "use a store that supports If-None-Match: *"
        else:
            message, hint = f"{self.name} refuses: {shown}", "check the URL and AWS_ENDPOINT_URL_S3"
        raise ObjectsError(message, hint)

    def _signed(self, path: str, body: bytes) -> Request:
        """Return a PUT with a signature of version 4, which is good for 15 minutes."""
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        digest = sha256(body)
        every = {
            "host": self._host,
            "if-none-match": "*",
            # With it, no store keeps an empty object of a sender that was killed before the body:
            # SeaweedFS 4.48 did, with the signed digest alone.
            "x-amz-checksum-sha256": b64encode(digest.digest()).decode(),
            "x-amz-content-sha256": digest.hexdigest(),
            "x-amz-date": now,
        }
        if self._credentials.token:
            every["x-amz-security-token"] = self._credentials.token
        names = ";".join(sorted(every))
        lines = [f"{name}:{every[name]}" for name in sorted(every)]
        request = "\n".join(["PUT", path, "", *lines, "", names, digest.hexdigest()])
        scope = f"{now[:8]}/{self._region}/s3/aws4_request"
        signed = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{sha256(request.encode()).hexdigest()}"
        key = b"AWS4" + self._credentials.secret.encode()
        for part in (*scope.split("/"), signed):
            key = hmac.new(key, part.encode(), "sha256").digest()
        every["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._credentials.key_id}/{scope}, "
            f"SignedHeaders={names}, Signature={key.hex()}"
        )
        return Request("PUT", path, body, every)


def region_in(environment: Mapping[str, str]) -> str:
    found = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    if not _REGION.fullmatch(found):
        raise UsageError("AWS_REGION: not a region", "such as AWS_REGION=eu-central-1")
    return found


def endpoint_at(environment: Mapping[str, str]) -> Address | None:
    """Return where the store is; None for AWS."""
    url = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    found = parsed(url) if url else None
    if url and (found is None or found.path.strip("/")):
        raise UsageError(
            "AWS_ENDPOINT_URL: not the address of a store",
            "such as https://s3.example.com, or http://127.0.0.1:8333",
        )
    return found


def _credentials(environment: Mapping[str, str], fd: int | None, timeout_s: float) -> Credentials:
    """Return the credentials; no message ever shows one."""
    if fd is None:
        where, found = "the environment", [environment.get(name, "") for name in _NAMES]
    else:
        where, members = f"descriptor {fd}", _from_descriptor(fd, timeout_s)
        found = [members.get(name) or "" for name in _MEMBERS]
    key_id, secret, token = (each if isinstance(each, str) else " " for each in found)
    if not all(map(_PRINTED.fullmatch, (key_id, secret, token or "-"))):
        way_out = "give the JSON of an AWS credential_process"
        if fd is None:
            way_out = f"set {_NAMES[0]} and {_NAMES[1]}, or --credential-fd N: {way_out}"
        raise UsageError(f"{where} has no credential for the bucket", way_out)
    return Credentials(key_id, secret, token)


def _from_descriptor(fd: int, timeout_s: float) -> dict[str, Any]:
    def read() -> bytes:
        with open(fd, "rb") as file:
            return file.read(_LONGEST_CREDENTIAL)

    try:
        data = within(timeout_s, read)
    except (OSError, OverflowError, ValueError) as error:
        raise UsageError(
            f"descriptor {fd} can't be read, or does not end",
            "give an open descriptor: 3<FILE",
        ) from error
    with suppress(ValueError, RecursionError, TypeError):
        found = json.loads(data)
        return found if isinstance(found, dict) else {}
    return {}


def _member(answer: Answer, name: str, pattern: str) -> str:
    """Return what an XML element of this name has, or ""."""
    found = re.search(f"<{name}>({pattern})</{name}>".encode(), answer.body)
    return found[1].decode() if found else ""
