from __future__ import annotations

import pytest

from sigwrap.exec.content import (
    ExecRefused,
    Shebang,
    command_line,
    interpreter_argv,
    shebang,
)


def test_the_first_line() -> None:
    for header, interpreter, argument in [
        (b"#!/bin/sh\n", b"/bin/sh", None),
        (b"#! /bin/sh\n", b"/bin/sh", None),
        (b"#!\t/bin/sh \t \n", b"/bin/sh", None),
        (b"#!/bin/sh -e\n", b"/bin/sh", b"-e"),
        (b"#!/usr/bin/env -S a  b \n", b"/usr/bin/env", b"-S a  b"),
        (b"#!/bin/sh", b"/bin/sh", None),
        (b"#!/bin/sh -" + b"x" * 300, b"/bin/sh", b"-" + b"x" * 244),
        (b"#!relative\nrest", b"relative", None),
    ]:
        assert shebang(header) == Shebang(interpreter=interpreter, argument=argument), header


def test_no_script() -> None:
    for header in [b"", b"\x7fELF", b" #!/bin/sh\n", b"#/bin/sh", b"!"]:
        assert shebang(header) is None, header


@pytest.mark.parametrize("header", [b"#!\n", b"#!  \t\n/bin/sh", b"#!/" + b"x" * 300, b"#!"])
def test_a_script_that_names_no_interpreter(header: bytes) -> None:
    with pytest.raises(ExecRefused):
        shebang(header)


def test_what_the_interpreter_gets() -> None:
    script = Shebang(interpreter=b"/bin/sh", argument=b"-e")
    argv = interpreter_argv(script, b"./tool", [b"any", b"a", b""])
    assert argv == [b"/bin/sh", b"-e", b"./tool", b"a", b""]
    assert command_line(argv) == b"/bin/sh\0-e\0./tool\0a\0\0"
    assert command_line([]) == b"\0"
