from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sigwrap.events import EVENT_TYPES
from sigwrap.log.codec import EVENT_LIMIT, MARK, WHOLE_TYPES, cut_payload, encode_payload

LONGEST_FIELDS = max(
    (kind.fields for kind in EVENT_TYPES.values() if kind.name not in WHOLE_TYPES), key=len
)
chunks = st.sampled_from(["", "x", "\x01", "é", "\U0001f600", "\udcff", "\n"])
texts = st.builds(lambda chunk, count: chunk * count, chunks, st.integers(0, 30_000))
programs = st.fixed_dictionaries({"path": texts, "name": texts, "argv": st.lists(texts)})
values = st.integers() | texts | st.lists(texts) | st.lists(programs, max_size=8)
payloads = st.dictionaries(st.sampled_from(LONGEST_FIELDS), values)


@settings(max_examples=25)
@given(payloads)
def test_no_payload_is_longer_than_the_limit(payload: dict[str, Any]) -> None:
    text = encode_payload("exec_redirected", payload)
    assert len(text) <= EVENT_LIMIT
    kept = json.loads(text)
    for name, value in payload.items():
        was = json.dumps(value, separators=(",", ":"))
        if name in kept.get("cut", {}):
            digest = blake2b(was.encode(), digest_size=16).hexdigest()
            assert kept["cut"][name] == {"json": len(was), "blake2b": digest}
        else:
            assert kept[name] == value


def test_what_is_short_is_the_same_object() -> None:
    payload = {"argv": ["git", "status"], "path": "/usr/bin/git"}
    assert cut_payload(payload) is payload


def test_only_the_longest_fields_are_cut() -> None:
    payload = {"argv": ["make", "x" * 90_000], "path": "/p" * 800, "comm": "make"}
    kept = cut_payload(payload)
    assert list(kept["cut"]) == ["argv"]
    assert (kept["path"], kept["comm"]) == (payload["path"], "make")
    assert kept["argv"][0] == "make" and kept["argv"][1].endswith("xx" + MARK)
    assert 5_000 < len(kept["argv"][1]) < EVENT_LIMIT


def test_of_many_arguments_the_first_are_kept() -> None:
    kept = cut_payload({"argv": [str(number) for number in range(20_000)]})
    words = kept["argv"]
    assert words[:3] == ["0", "1", "2"] and words[-1].endswith(MARK) and len(words) > 500


def test_a_policy_and_what_is_recorded_stay_whole() -> None:
    for kind in WHOLE_TYPES:
        assert len(encode_payload(kind, {"text": "x" * 90_000})) > 90_000


def test_of_very_many_fields_some_are_left_out() -> None:
    assert len(cut_payload({str(number): "x" * 900 for number in range(9_000)})) < 100
