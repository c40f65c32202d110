import os
import subprocess

lines = [
    b"/bin/echo A" + b"x" * 300,
    b"/bin/echo AA",
    b"/bin/echo",
    b"/bin/echo\0abc def\n",
    b"/bin/echo abc\0def\n",
    b"  /bin/echo   a b  c \t \n",
    b"/bin/echo hi\r\n",
    b"\n",
    *(
        b" " * (size - 9) + b"/bin/echo" + end
        for size in (252, 253, 254, 255)
        for end in (b"\n", b" \n", b"")
    ),
]
for number, line in enumerate(lines):
    with open("script", "wb") as file:
        file.write(b"#!" + line)
    os.chmod("script", 0o755)
    try:
        done = subprocess.run(["./script", "word"], capture_output=True)
        print(number, done.returncode, done.stdout)
    except OSError as error:
        print(number, error.errno)
