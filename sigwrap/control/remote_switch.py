"""The remote kill switch: a URL that is polled every 10 s, and may kill the run.

A poll is missed if no valid answer comes. A missed poll is an event and kills nothing: an attacker
that cuts the network must not end every run. With --killswitch-fail-closed, three misses in a row
kill the run. A kill cannot be taken back.

A thread polls, since a name server, a file or the server decides how long that takes. The loop's
own clock decides which polls are missed: a thread that never comes back is a row of missed polls.
The thread starts before the command does. It has a descriptor table of its own, so the next poll
gets its socket however many processes the command makes the supervisor hold. It imports nothing and
reads no certificates any more, since the command may be able to change them.
"""

from __future__ import annotations

import _thread
import json
import os
import re
import signal
import socket
import stat
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import quote, unquote_to_bytes, urlsplit

import sigwrap
from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.errors import SessionError, UsageError
from sigwrap.events import Payload
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import have_own_table
from sigwrap.kernel.peer import ListenerCheck
from sigwrap.session.run_end import SwitchedOff
from sigwrap.text import printable

if TYPE_CHECKING:
    import ssl

    from sigwrap.session.session import Session

WITHIN_S = 5.0  # for each wait of a poll
EVERY_S = 10.0
_MISSES_UNTIL_KILL = 3
_RECORDED_EVERY = 30  # misses in a row, after the first
_GIVE_UP_AFTER_S = WITHIN_S + 0.5  # the thread mostly gives up first, and knows why
_MOST_PARTS = 1000  # of a path, with those of the links on it
LONGEST_BODY = 64 * 1024
_JSON = "application/json"
_ALLOWED = "https://…, file:///PATH, or http:// to this machine (localhost, 127.0.0.1, [::1])"
_PORTS = {"https": 443, "http": 80}
_URL_CHARACTERS = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f.]*:[0-9a-f:.]+")
_LOOPBACK = re.compile(r"localhost|::1|127(\.[0-9]{1,3}){3}")
_SHOWN_CHARACTERS = 200
_BUNDLES = ("ca-certificates.crt", "ca-bundle.crt")
# A name server that is down must not use up a whole poll.
_RESOLVER = "timeout:1 attempts:2"


class Killed(NamedTuple):
    reason: str  # a printable line


class Alive(NamedTuple):
    pass


class Missed(NamedTuple):
    reason: str


Answer = Killed | Alive | Missed


class RemoteSwitch:
    def __init__(
        self, url: str, where: str, *, environment: Mapping[bytes, bytes], fail_closed: bool
    ) -> None:
        """`where`: the option or variable that had the URL. Raises SigwrapError if no poll of it
        could ever succeed."""
        self._address = read_address(url, where)
        self._poll = poll_of(self._address, environment)
        self._fail_closed = fail_closed
        self._missed = 0  # in a row
        self._was_reached = False
        self.has_killed = False
        self._is_awaited = False  # the loop still waits for the answer of this period
        self._is_thread_idle = True
        self._answer: Answer  # the thread's last one
        self._wanted_fd = self._answered_fd = -1

    @property
    def gaps(self) -> list[str]:
        """Return what the log lists as missing. Root can write every file, and knows it."""
        if not isinstance(self._address, File) or os.geteuid() == 0:
            return []
        if any(map(_is_writable, _ways_to(self._address.path))):
            return [f"the kill switch {self._address.shown}: the command can write to it too"]
        return []

    @property
    def is_held_up(self) -> bool:
        """Whether the thread may be in a read of a file that nothing can interrupt."""
        return isinstance(self._address, File) and not self._is_thread_idle

    def start_thread(self) -> None:
        """Raises SessionError."""
        self._wanted_fd = os.eventfd(0, os.EFD_CLOEXEC)
        self._answered_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            _thread.start_new_thread(self._poll_whenever_wanted, ())
        except RuntimeError as failure:
            raise SessionError(
                f"cannot poll the remote kill switch: {failure}", "check ulimit -u and -v"
            ) from failure

    def begin(self, session: Session) -> None:
        self._loop = session.loop
        self._recorder = session.recorder
        self._run = session.ending.run
        self._loop.watch(self._answered_fd, self._on_answered)
        self._start_period()

    def _start_period(self) -> None:
        self._is_awaited = True
        if self._is_thread_idle:
            self._is_thread_idle = False
            os.eventfd_write(self._wanted_fd, 1)
        self._loop.call_in(_GIVE_UP_AFTER_S, self._give_up)
        self._loop.call_in(EVERY_S, self._start_period)

    def _on_answered(self, _happened: int) -> None:
        try:
            os.eventfd_read(self._answered_fd)
        except BlockingIOError:
            return  # a turn of the loop within this one took the answer
        self._is_thread_idle = True
        if self._is_awaited or isinstance(self._answer, Killed):  # a kill is never too late
            self._is_awaited = False
            self._take(self._answer)

    def _give_up(self) -> None:
        if self._is_awaited:
            self._is_awaited = False
            self._take(Missed("the poll does not return"))

    def _take(self, answer: Answer) -> None:
        if self.has_killed:
            return
        if isinstance(answer, Missed):
            self._miss(answer.reason)
            return
        self._reached()
        if isinstance(answer, Killed):
            self._kill(answer.reason)

    def _reached(self) -> None:
        missed, self._missed = self._missed, 0
        self._was_reached = True
        if missed:
            self._record("killswitch_reached", {"missed": missed})

    def _miss(self, reason: str) -> None:
        self._missed += 1
        kills = self._fail_closed and self._missed >= _MISSES_UNTIL_KILL
        if self._missed == 1 or kills or self._missed % _RECORDED_EVERY == 0:
            self._record("killswitch_missed", {"reason": reason, "count": self._missed})
        url = self._address.shown
        if self._missed == 1 and not self._was_reached:  # the URL may be wrong
            self._recorder.tell(
                f"cannot reach the remote kill switch {url}: {reason} (retrying every "
                f"{EVERY_S:.0f} s)"
            )
        if kills:
            self._kill(f"no answer from {url} for {self._missed} polls (fail closed)")

    def _record(self, event: str, payload: Payload) -> None:
        self._recorder.record(event, os.getpid(), {"url": self._address.shown, **payload})

    def _kill(self, reason: str) -> None:
        self.has_killed = True
        self._run.switch_off(SwitchedOff(reason, self._address.shown, time.time_ns()))

    def _poll_whenever_wanted(self) -> None:
        """The thread. An error's text may hold a part of the URL, so only its type is shown."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        have_own_table((self._wanted_fd, self._answered_fd, *procfs.held()))
        while True:
            os.eventfd_read(self._wanted_fd)
            try:
                self._answer = self._poll()
            except Exception as bug:
                self._answer = Missed(f"internal error: {type(bug).__name__}")
            os.eventfd_write(self._answered_fd, 1)


def _ways_to(path: bytes) -> Iterator[bytes]:
    """Yield each folder and link on the path, and the file."""
    here, parts = b"/", path.split(b"/")[::-1]
    for _ in range(_MOST_PARTS):
        yield here
        if not parts:
            return
        at = os.path.normpath(os.path.join(here, parts.pop()))
        if os.path.islink(at):
            parts += os.readlink(at).split(b"/")[::-1]
            here = b"/" if os.readlink(at).startswith(b"/") else os.path.dirname(at)
        else:
            here = at


def _is_writable(path: bytes) -> bool:
    """Whether this user can write to it, make it writable, or replace what is in it."""
    try:
        found = os.stat(path)
    except OSError:  # it does not exist
        return os.access(os.path.dirname(path), os.W_OK)
    is_shared = stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)
    return found.st_uid == os.geteuid() or (os.access(path, os.W_OK) and not is_shared)


class NoAnswer(Exception):
    """A poll without an answer; the text says why."""


class Server(NamedTuple):
    host: str
    port: int
    authorization: str  # the value of a header, or empty


class Web(NamedTuple):
    shown: str  # without user, password, query and fragment
    server: Server
    is_secure: bool
    place: str  # host and port as in the URL
    target: str  # path and query


class File(NamedTuple):
    shown: str
    path: bytes


def read_address(url: str, where: str, allowed: str = _ALLOWED) -> Web | File:
    """Parse the URL of the option or variable `where`. Raises UsageError, without the URL: what is
    mistyped may be a password."""
    scheme = url.partition("://")[0].lower()
    try:
        if scheme == "file":
            return _file(url)
        if scheme in _PORTS:
            return _web(url, scheme)
        raise ValueError("not a supported URL")
    except ValueError as wrong:
        raise UsageError(f"{where}: {wrong}", allowed) from None


def _file(url: str) -> File:
    parts = urlsplit(quote(os.fsencode(url), safe=":/?#%"))
    path = unquote_to_bytes(parts.path)
    if parts.netloc not in ("", "localhost") or not path.startswith(b"/") or path == b"/":
        raise ValueError("a file needs its absolute path, file:///PATH")
    if b"\0" in path:
        raise ValueError("a path cannot have a NUL byte")
    return File(_cut(f"file://{parts.path}"), path)


def _web(url: str, scheme: str) -> Web:
    server = _server(url, _PORTS[scheme])
    if scheme == "http" and not _LOOPBACK.fullmatch(server.host):
        raise ValueError(
            "http is allowed to this machine only: use https, whose response can be verified"
        )
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    place = parts.netloc.rpartition("@")[2]
    return Web(_cut(f"{scheme}://{place}{parts.path}"), server, scheme == "https", place, target)


def _server(url: str, usual_port: int) -> Server:
    if not _URL_CHARACTERS.fullmatch(url):
        raise ValueError("it has a space or another character that must be written as %XX")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # its text may have a part of the password
        host, port = "", None
    if not _HOST.fullmatch(host) or port == 0:
        raise ValueError("no host, or not a port number")
    before, at, _ = parts.netloc.rpartition("@")
    user, _, password = before.partition(":")
    both = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
    basic = f"Basic {b64encode(both).decode()}" if at else ""
    return Server(host, usual_port if port is None else port, basic)


def _cut(text: str) -> str:
    """Return a short printable line. Escaping can turn one character into ten, so cut twice."""
    line = printable(text[: 4 * _SHOWN_CHARACTERS])
    return line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + "…"


def proxy_for(server: Server, environment: Mapping[bytes, bytes]) -> Server | None:
    """Return the proxy that the environment names for an https server. Raises UsageError."""
    name = "https_proxy" if _variable("https_proxy", environment) else "HTTPS_PROXY"
    given = _variable(name, environment)
    excepted = _variable("no_proxy", environment) or _variable("NO_PROXY", environment)
    if not given or _LOOPBACK.fullmatch(server.host) or _is_listed(server, excepted):
        return None
    try:
        if "://" in given and not given.lower().startswith("http://"):
            raise ValueError("only http:// proxies are supported, also for https")
        return _server(given if "://" in given else f"http://{given}", 80)
    except ValueError as wrong:
        raise UsageError(f"${name}: {wrong}", "set it to http://HOST:PORT, or unset it") from None


def _is_listed(server: Server, no_proxy: str) -> bool:
    for each in no_proxy.lower().replace(" ", "").split(","):
        end = f".{each.lstrip('.')}"
        is_host = f".{server.host}".endswith(end) or f".{server.host}:{server.port}".endswith(end)
        if each == "*" or (each and is_host):
            return True
    return False


def _variable(name: str, environment: Mapping[bytes, bytes]) -> str:
    return os.fsdecode(environment.get(name.encode(), b""))


def verifying_context(environment: Mapping[bytes, bytes]) -> ssl.SSLContext:
    """Return a context that trusts the CA certificates of this moment. Raises SessionError.

    OpenSSL would read a folder of certificates again at each handshake, and the command may be able
    to write there.
    """
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies chain and name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    file = _variable("SSL_CERT_FILE", environment)
    folders = _variable("SSL_CERT_DIR", environment)
    if not file and not folders:
        usual = ssl.get_default_verify_paths()
        folders = usual.openssl_capath
        bundles = (usual.openssl_cafile, *(os.path.join(folders, each) for each in _BUNDLES))
        if file := next(filter(os.path.exists, bundles), ""):
            folders = ""  # it has the same certificates, and is read in a third of the time
    names = [file]
    for folder in folders.split(":"):
        with suppress(OSError):
            names += [os.path.join(folder, each) for each in os.listdir(folder)]
    for each in set(map(os.path.realpath, names)):  # many names in a folder are links to one file
        with suppress(OSError):  # others hold no certificate
            if os.path.isfile(each):
                context.load_verify_locations(cafile=each)
    if not context.cert_store_stats()["x509_ca"]:
        looked_at = printable(" and ".join(filter(None, (file, folders))))
        raise SessionError(
            f"cannot verify https servers: no CA certificates in {looked_at}",
            "install ca-certificates, or set $SSL_CERT_FILE",
        )
    return context


def read_answer(body: bytes) -> Answer:
    """Parse the body. Only a JSON object can keep the run alive: an error page cannot."""
    try:
        found = json.loads(body.decode())
    except UnicodeDecodeError:
        return Missed("the answer is not UTF-8")
    except (ValueError, RecursionError):
        return Missed("the answer is not JSON")
    if not isinstance(found, dict):
        return Missed("the answer is not a JSON object")
    match found.get("killed", False), found.get("reason"):
        case True, str(reason):
            return Killed(_cut(" ".join(reason.split())) or "no reason given")
        case True, _:
            return Killed("no reason given")
        case False, _:
            return Alive()
    return Missed("in the answer, killed is neither true nor false")


def poll_of(address: Web | File, environment: Mapping[bytes, bytes]) -> Callable[[], Answer]:
    """Return the function that polls once. Raises SigwrapError if it never could."""
    if isinstance(address, File):
        return lambda: _answer(lambda: _read(address.path))
    get = getter_of(address, environment)
    return lambda: _answer(get)


def getter_of(
    address: Web, environment: Mapping[bytes, bytes], kind: str = _JSON, longest: int = LONGEST_BODY
) -> Callable[[], bytes]:
    """Return the function that gets the body once. Raises SigwrapError if it never could."""
    if not address.is_secure:
        listeners = ListenerCheck()
        return lambda: _get(address, None, None, listeners, kind, longest)
    proxy = proxy_for(address.server, environment)
    try:
        context = verifying_context(environment)
    except ImportError as missing:
        raise SessionError(
            f"https needs OpenSSL, which cannot be loaded: {missing}",
            "install libssl3, or use http:// to this machine",
        ) from missing
    os.environ.setdefault("RES_OPTIONS", _RESOLVER)
    return lambda: _get(address, proxy, context, None, kind, longest)


def _answer(get: Callable[[], bytes]) -> Answer:
    try:
        return read_answer(get())
    except (NoAnswer, HTTPException, OSError) as failure:
        return Missed(why_no_answer(failure))


def why_no_answer(failure: NoAnswer | HTTPException | OSError) -> str:
    match failure:
        case NoAnswer():
            return str(failure)
        case HTTPException():
            return f"not a complete HTTP response ({type(failure).__name__})"
        case TimeoutError():
            return f"no response within {WITHIN_S:.0f} s"
    if verified := getattr(failure, "verify_message", ""):
        return f"cannot verify its certificate: {verified}"
    if reason := getattr(failure, "reason", ""):  # of an SSLError
        return f"TLS: {reason}"
    return failure.strerror or type(failure).__name__


def _read(path: bytes) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise NoAnswer("not a regular file")
        return _short_enough(file.read(LONGEST_BODY + 1), "file", LONGEST_BODY)


def _get(
    address: Web,
    proxy: Server | None,
    context: ssl.SSLContext | None,
    listeners: ListenerCheck | None,
    kind: str,
    longest: int,
) -> bytes:
    server = address.server
    with closing(_connect(proxy or server, listeners)) as connection:
        if proxy is not None:
            host = f"[{server.host}]" if ":" in server.host else server.host
            headers = {"Host": f"{host}:{server.port}"}
            if proxy.authorization:
                headers["Proxy-Authorization"] = proxy.authorization
            # A duplicate: HTTPConnection closes what it gets.
            accepted = _response(connection.dup(), "CONNECT", headers["Host"], headers)
            if accepted.status != 200:
                raise NoAnswer(f"the proxy refused the connection: status {accepted.status}")
        if context is not None:
            # As bytes: for a str, Python would import the codec for international names.
            name = server.host.encode("ascii")
            connection = context.wrap_socket(connection, server_hostname=name)
        with closing(connection):
            headers = {"Host": address.place, "Accept": kind}
            if server.authorization:
                headers["Authorization"] = server.authorization
            response = _response(connection, "GET", address.target, headers)
            if response.status != 200:
                is_redirect = 300 <= response.status < 400
                followed = " (sigwrap does not follow redirects)" if is_redirect else ""
                raise NoAnswer(f"status {response.status}{followed}")
            body = _short_enough(response.read(longest + 1), "response", longest)
            if response.length:  # of what the server announced, this did not arrive
                raise NoAnswer("the response is incomplete")
            return body


def _response(
    connection: socket.socket, method: str, target: str, headers: dict[str, str]
) -> HTTPResponse:
    http = HTTPConnection(headers["Host"])
    http.sock = connection
    agent = {"User-Agent": f"sigwrap/{sigwrap.__version__}"}
    http.request(method, target, headers=headers | agent)
    return http.getresponse()


def _short_enough(body: bytes, what: str, longest: int) -> bytes:
    if len(body) > longest:
        raise NoAnswer(f"the {what} is larger than {longest // 1024} KiB")
    return body


def _connect(server: Server, listeners: ListenerCheck | None) -> socket.socket:
    """Connect to the first address that may answer. A silent one leaves time for the others.

    With `listeners`, for http, a supervised process that has taken the port is not asked.
    """
    hosts = [b"127.0.0.1", b"::1"]
    if server.host != "localhost":
        # As bytes: for a str, Python would import the codec for international names.
        hosts = [server.host.encode("ascii")]
    flags = socket.AI_NUMERICHOST if listeners else 0  # http: a name could be another machine
    places = [
        place
        for host in hosts
        for place in socket.getaddrinfo(host, server.port, type=socket.SOCK_STREAM, flags=flags)
    ]
    failures: list[OSError | NoAnswer] = []
    for family, _, _, _, place in places:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(WITHIN_S / len(places))
            connection.connect(place)
            connection.settimeout(WITHIN_S)
            until_s = time.monotonic() + WITHIN_S
            objection = listeners and listeners.objection(str(place[0]), server.port, until_s)
            if not objection:
                return connection
            failures.insert(0, NoAnswer(f"response not trusted: {objection}"))
        except OSError as failure:
            failures.append(failure)
        connection.close()
    raise failures[0]
