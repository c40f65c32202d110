"""Whether the head of a request has one meaning only. Two readers of one request who disagree about
where it ends are how requests are smuggled; so what HTTP merely tolerates is refused here, before
h11 reads it. No browser sends any of it.
"""

from __future__ import annotations

from sigwrap.bare import re
from sigwrap.tuples import NamedTuple
from sigwrap.watch.page.bounds import BODY_BYTES, HEAD_BYTES

END = b"\r\n\r\n"
_CONTROL = rb"[\x00-\x08\x0a-\x1f\x7f]"  # but for the tab
_REQUEST = re.compile(rb"(GET|POST) /[!-~]* HTTP/1\.1")
_DIGITS = re.compile(rb"[0-9]{1,9}")
# Each of these decides something.
_ONCE = frozenset(
    (
        *(b"host", b"origin", b"cookie", b"content-length", b"content-type"),
        *(b"sec-fetch-site", b"x-sigwrap-token"),
    )
)


class Bad(NamedTuple):
    status: int
    why: str


def end_of(received: bytes | bytearray) -> int:
    """Where the body begins; 0 as long as the head isn't whole."""
    at = received.find(END)
    return at + len(END) if at >= 0 else 0


def objection_to_beginning(received: bytes | bytearray) -> Bad | None:
    """To what is no whole head yet, or has more behind it."""
    head = received[: end_of(received) or len(received)]
    if len(head) > HEAD_BYTES:
        return Bad(431, f"the head is longer than {HEAD_BYTES} bytes")
    if head.count(b"\n") != head.count(b"\r\n"):
        return Bad(400, "a line that ends without CR")
    if re.search(_CONTROL, head.replace(b"\r\n", b"")[: -1 if head.endswith(b"\r") else None]):
        return Bad(400, "a control character")
    return None


def objection_to_head(head: bytes) -> Bad | None:
    """To a whole one to whose beginning there is no objection."""
    request, *lines = head[: -len(END)].split(b"\r\n")
    if not _REQUEST.fullmatch(request):
        return Bad(400, "not an HTTP/1.1 GET or POST of a path")
    names = []
    for line in lines:
        if line[:1] in (b" ", b"\t"):
            return Bad(400, "a folded header line")
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon:
            return Bad(400, "a header line without a colon")
        names.append(name)
        if name == b"transfer-encoding":
            return Bad(400, "a body without a length")
        if name == b"content-length":
            length = value.strip(b" \t")
            if not _DIGITS.fullmatch(length):
                return Bad(400, "a length that is not a number")
            if int(length) > BODY_BYTES:
                return Bad(413, f"the body is longer than {BODY_BYTES} bytes")
    if b"host" not in names:
        return Bad(400, "no host")
    if any(names.count(name) > 1 for name in _ONCE):
        return Bad(400, "a repeated header field")
    return None
