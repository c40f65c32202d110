"""Text: escaped for a terminal, masked for the log, and read as a word, a duration or a size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sigwrap.bare import re

_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./~^-"
_UNSEEN = (  # compiled on first use
    "[\u0334-\u0338\u0488\u0489\u1abe\u20d0-\u20f0\ua670-\ua672"
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_RIGHT_TO_LEFT = (
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_REORDERED = "it has right-to-left letters: a terminal may show its words in another order"
_GOES_ON = "    | "
_NARROWEST, _WIDEST = 20, 80  # the size that a terminal reports can be wrong
_LONG_LINE, _LONGEST_WORD, _LONGEST_LINE = 1000, 200, 4000
_ID_END = 6
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}


def printable(text: str) -> str:
    if _is_seen(text):
        return text
    return "".join(char if _is_seen(char) else _escape(char) for char in text)


def bounded(line: str) -> str:
    """Shorten a very long line: first its long words, then the line.

    The end stays, because it holds the file name of a path and the advice of a message.
    """
    if len(line) > _LONG_LINE:
        line = " ".join(_cut(word, _LONGEST_WORD) for word in line.split(" "))
    return _cut(line, _LONGEST_LINE)


def shell_words(argv: Iterable[str]) -> str:
    """Return a command line that could be pasted into bash."""
    return " ".join(map(_shell_word, argv))


def note_on_order(lines: Iterable[str]) -> str:
    """Return a warning if a terminal may reorder the words of these lines, or an empty string."""
    for line in lines:
        if not line.isascii() and re.search(_RIGHT_TO_LEFT, line):
            return _REORDERED
    return ""


def rows(line: str, columns: int) -> list[str]:
    """Break a printable line before a terminal would, and mark the continuation.

    So no part of it looks like a line of its own. A character that is not ASCII takes up to two
    columns. `columns` is 0 if the terminal does not report its width.
    """
    columns = min(max(columns or _WIDEST, _NARROWEST), _WIDEST)
    found, row, room = [], "", columns
    for char in line:
        width = 1 if char.isascii() else 2
        if width > room:
            found.append(row)
            row, room = _GOES_ON, columns - len(_GOES_ON)
        row += char
        room -= width
    return [*found, row]


def shortened(text: str, longest: int) -> str:
    """Return the beginning of the text, at most `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def first_of(files: list[str]) -> str:
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{printable(files[0])}{more}"


def beginning(text: str, characters: int) -> str:
    """Return the text, or its beginning and the number of characters left."""
    rest = len(text) - characters
    return text if rest <= 0 else f"{text[:characters]} ... and {rest} more characters"


def _cut(text: str, longest: int) -> str:
    half = longest // 2
    return text if len(text) <= longest else f"{text[: half - 1]}…{text[-half:]}"


def _shell_word(word: str) -> str:
    if word and not word.strip(_SAFE):  # all its characters are safe
        return word
    if _is_seen(word):
        return "'" + word.replace("'", "'\\''") + "'"
    quoted = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{printable(quoted)}'"


def _is_seen(text: str) -> bool:
    return text.isprintable() and (text.isascii() or re.search(_UNSEEN, text) is None)


def _escape(char: str) -> str:
    code = ord(char)
    if char in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[char]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# Suggest the closest word.


def nearest_word(word: str, words: Iterable[str]) -> str:
    import difflib  # only after mistakes, so never while the command runs

    by_lowercase = {each.lower(): each for each in words}
    # difflib is quadratic in the word, and no typing error is longer.
    close = difflib.get_close_matches(word[:64].lower(), by_lowercase, n=1, cutoff=0.6)
    return by_lowercase[close[0]] if close else ""


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return the start of a hint; empty if no word is close."""
    near = nearest_word(word, words)
    return f'did you mean "{near}"? ' if near else ""


# Mask secrets in arguments before they are written.

MASK = "***"


_SECRET_WORD = (
    r"(?:token|passw(?:or)?d|passphrase|passwd|secret|api[-_]?key|access[-_]?key|private[-_]?key"
    r"|auth[-_]?key|signing[-_]?key|encryption[-_]?key|credentials?)"
)
# A text without any of these, in lower case, matches no pattern below. A search for each of them is
# several times faster than one pattern for all.
_HINTS = """
    token passw passphrase secret key credential bearer authorization cookie :// ghp_ gho_ ghu_
    ghs_ ghr_ github_pat_ glpat- npm_ pypi- hf_ sk- sk_live rk_live xox akia asia aiza eyj
""".split()
_OPTION = re.compile(rf"(?i)--?(?:[a-z0-9]++[-_.]){{0,6}}{_SECRET_WORD}(?:[-_](?:value|string))?\Z")
_ASSIGNED = re.compile(
    rf"(?i)({_SECRET_WORD}(?:_[a-z0-9_]{{1,20}}+)?[\"']?\s{{0,4}}[=:]\s{{0,4}})"
    r"(\"[^\"]++|'[^']++|[^\s\"'&;,]++)"
)
_HEADER = re.compile(
    r"(?i)((?:authorization|cookie|x-[a-z]{1,16}-(?:token|key)|private-token)\s{0,4}:\s{0,4}"
    r"(?:[a-z]{1,12}\s{1,4})?)([^\"'\r\n]++)"
)
_BEARER = re.compile(r"(?i)(\bbearer[\s=:]{1,4})([\w.~+/=-]{6,}+)")
_URL = re.compile(r"(://[^\s/@:\"']{0,256}+:)([^\s/@\"']++)@")
_URL_TOKEN = re.compile(r"(://)([\w.~-]{20,}+)@")
_KEY_BLOCK = re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[^-]*+")
_KNOWN = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|npm_|pypi-|hf_|sk-|sk_live_|rk_live_|xox[a-z]-)[\w-]{12,}+"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,}+|(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{4,}+\.[\w-]*+"
)

# Options whose short name says nothing: program -> (separate value, attached value).
_BY_PROGRAM: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "curl": (frozenset({"-u", "--user", "-U", "--proxy-user"}), ("-u", "--user=")),
    "sshpass": (frozenset({"-p"}), ("-p",)),
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mariadb"), (frozenset(), ("-p",))),
    "redis-cli": (frozenset({"-a"}), ()),
}


def masked(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the words with their secrets replaced by `***`."""
    known = _BY_PROGRAM.get(argv[0].rpartition("/")[2]) if argv else None
    if known is None and not _hints_at_any("\n".join(argv)):
        return tuple(argv)
    separate, attached = known or (frozenset(), ())
    result: list[str] = []
    value_follows = False
    for position, word in enumerate(argv):
        if value_follows and position:
            result.append(MASK)
            value_follows = False
            continue
        value_follows = word in separate or (word[:1] == "-" and _OPTION.match(word) is not None)
        prefix = next((each for each in attached if word.startswith(each) and word != each), "")
        result.append(prefix + MASK if prefix and position else masked_text(word))
    return tuple(result)


def id_end(session_id: str) -> str:
    """Return the end of a session's id, which users type."""
    return session_id.rpartition("-")[2][-_ID_END:]


def masked_text(text: str) -> str:
    if not _hints_at_any(text):
        return text
    for pattern in (_HEADER, _ASSIGNED, _BEARER):
        text = pattern.sub(rf"\1{MASK}", text)
    text = _URL.sub(rf"\1{MASK}@", text)
    text = _URL_TOKEN.sub(rf"\1{MASK}@", text)
    text = _KEY_BLOCK.sub(rf"\1{MASK}", text)
    return _KNOWN.sub(MASK, text)


def _hints_at_any(text: str) -> bool:
    lowered = text.lower()
    return any(map(lowered.__contains__, _HINTS))


# Durations and sizes as people type them: `45s`, `1h30m`, `2w`; `512M`, `1.5G`.

SPANS = "45s, 10m, 1h30m, 2d or 2w"  # examples for error messages
SIZES = "64K, 500M or 1G"

_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_UNITS_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

# A policy's JSON Schema has these patterns too, so they use only syntax of every regex dialect.
_NUMBER = r"[0-9]{1,12}(\.[0-9]{1,9})?"
SPAN_PATTERN = rf"({_NUMBER} ?({'|'.join(_UNITS_S)}) ?)*{_NUMBER} ?({'|'.join(_UNITS_S)})"
SECONDS_PATTERN = rf"({_NUMBER}|{SPAN_PATTERN})"
SIZE_PATTERN = rf"{_NUMBER} ?([KkMmGgTt](i?[Bb])?|[Bb])?"

_PART = rf"(?P<number>{_NUMBER}) ?(?P<unit>[A-Za-z]+)"


def span_s(words: str, *, or_seconds: bool = False) -> float:
    """Return seconds; with `or_seconds`, a number needs no unit. ValueError says what is wrong."""
    if re.fullmatch(_NUMBER, words):
        if or_seconds:
            return float(words)
        units = ", ".join(words + unit for unit in ("s", "m", "h", "d"))
        raise ValueError(f"a duration needs a unit ({units} or {words}w)")
    if not re.fullmatch(SPAN_PATTERN, words):
        raise ValueError(f"not a duration (such as {SPANS})")
    parts = re.finditer(_PART, words)
    return sum(float(part["number"]) * _UNITS_S[part["unit"]] for part in parts)


def size_bytes(words: str) -> int:
    """Return bytes, in the units of ls and du: K, KB and KiB are 1024.

    ValueError says what is wrong.
    """
    if not re.fullmatch(SIZE_PATTERN, words):
        raise ValueError(f"not a size (such as {SIZES})")
    number = words.rstrip("KMGTBkmgtib ")
    unit = _UNITS_BYTES[words[len(number) :].strip().upper().rstrip("IB")]
    return round(float(number) * unit) if "." in number else int(number) * unit
