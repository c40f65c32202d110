"""What builds."""

from __future__ import annotations

from tests.programs.program import Program

_CMAKE = """\
cat >CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.13)
project(small C)
add_library(part SHARED part.c)
add_custom_command(OUTPUT made.c COMMAND sh -c "echo 'int made = 3\\;' >made.c")
add_executable(whole whole.c made.c)
target_link_libraries(whole part)
enable_testing()
add_test(NAME runs COMMAND whole)
add_test(NAME fails COMMAND sh -c "kill -9 $$")
EOF
echo 'int part(void) { return 4; }' >part.c
cat >whole.c <<'EOF'
#include <stdio.h>
int part(void);
extern int made;
int main(void) { printf("%d\\n", part() + made); return 0; }
EOF
"""

_MAKE = """\
cat >Makefile <<'EOF'
all: $(addprefix out/,$(shell seq 30)) sub
out/%: ; @mkdir -p out; echo $* >$@
sub: ; @$(MAKE) --no-print-directory -C deeper
fails: ; @kill -TERM $$$$
.PHONY: all sub fails
EOF
mkdir deeper; printf 'all: a b c\\n%%: ; @echo $@ >$@\\n' >deeper/Makefile
"""

PROGRAMS = [
    Program(
        name="cmake with ninja",
        needs=("cmake", "ninja", "cc"),
        before=_CMAKE,
        steps=(
            "cmake -G Ninja -S . -B out",
            "ninja -C out | sed 's/^.*] //' | sort",
            "./out/whole",
            "ctest --test-dir out 2>&1",
            "ninja -C out -t clean; ls out/whole",
        ),
        normalize=((r" +\d+\.\d+ sec", " TIME"), (r"(done|written) \(\d+\.\d+s\)", r"\1")),
        ignore_files=r"\.ninja_|CMakeFiles/|Testing/",
        within_s=120,
    ),
    Program(
        name="make -j",
        needs=("make",),
        before=_MAKE,
        steps=(
            "make -j8",
            "cat out/* deeper/[abc] | sort | md5sum",
            "make -j8 fails",
            "make -j2 -k fails all; make -q all; echo $?",
        ),
        quick=True,
    ),
]
