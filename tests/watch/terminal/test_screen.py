from __future__ import annotations

from sigwrap.watch.terminal.watching import Keys


def test_keys_however_they_come() -> None:
    for data, keys in (
        (b"yn\r", ["y", "n", "enter"]),
        ("ü€".encode(), ["ü", "€"]),
        (b"\x1b[A\x1b[B\x1bOA\x1b[Z\x1b[5~", ["up", "down", "up", "backtab", "page-up"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[200~y\x1b[201~", ["y"]),
        (b"\x1by", []),
        (
            b"\x03\x04\x1a\x7f\x15\t",
            ["quit", "quit", "suspend", "backspace", "erase", "tab"],
        ),
        (b"\x00\x01\xff", ["\ufffd"]),
        (b"\x1b[<0;1;1Mq", ["q"]),
    ):
        assert list(Keys().of(data)) == keys
    split = Keys()
    assert [list(split.of(each)) for each in (b"\x1b[", b"A", b"\xc3", b"\xbc")] == [
        *([], ["up"]),
        *([], ["ü"]),
    ]
    endless = Keys()
    assert list(endless.of(b"\x1b[" + b"1" * 40)) == []
    assert list(endless.of(b"y")) == ["y"]
