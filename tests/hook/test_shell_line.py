"""A shell line is taken apart as bash does it, and what isn't sure is said."""

from __future__ import annotations

import time

from sigwrap.hooks.shell_line import MAX_COMMANDS, Line
from sigwrap.hooks.shell_reader import MAX_BYTES, read_line

HOME = "/home/u"
WHICH = "the program that it runs is not known in advance"


def read(text: str) -> Line:
    return read_line(text, folder="/p", home=HOME, depth=2)


def commands(text: str) -> list[str]:
    """Those of a line of which all is known but single words, shown as `_`."""
    line = read(text)
    assert line.unknown == (), line.unknown
    return shown(line)


def shown(line: Line) -> list[str]:
    return [
        "|".join(word.text.replace("\0", "_") for word in command.words)
        for command in line.commands
    ]


def test_every_command_of_a_line_is_found() -> None:
    for line, found in [
        ("git push -f", ["git|push|-f"]),
        ("a && b || c; d & e | f |& g\nh", list("abcdefgh")),
        ("(a; { b; }) && ! c", list("abc")),
        ("if a; then b; elif c; then d; else e; fi", list("abcde")),
        ("while a; do b; done; until c; do d; done", list("abcd")),
        ("for i in $(a); do b $i; done; select x in y; do c; done", ["a", "b|_", "c"]),
        ("for ((i=$(a);i<3;i++)); do b; done", list("ab")),
        ("case $(a) in x) b;; *) c;; esac", list("abc")),
        ('x=$(a) y=`b` z="$(c "$(d)")" e', ["a", "b", "d", "c|_", "e"]),
        ("echo ${x:-$(a)} $((1+$(b))) <(c) >(d)", list("abcd")),
        ("cat <<E\n$(a) $x\nE\nb", ["cat", "a", "b"]),
        ("cat <<'E'\n$(a)\nE\nb", ["cat", "b"]),
        ("cat <<E > f && b\nx\nE", ["cat", "b"]),
        ("a >f b <g c", ["a|b|c"]),
        (">f a b", ["a|b"]),
        ("a <<E b\nE", ["a|b"]),
        ("a && b >f c", ["a", "b|c"]),
        ("a | b 2>f c", ["a", "b|c"]),
        ("a <&- b", ["a|b"]),
        ("! a <<E b\nE", ["a|b"]),
        ('cat <<< "$(a)"', ["a", "cat"]),
        ('[[ -n $(a) ]] && [ "$(b)" ]; test $(c)', list("abc")),
        ("export A=$(a); declare -A m=([x]=$(b)); v[$(c)]=1", list("abc")),
        ("a # b\n# c\nd", ["a", "d"]),
        ("a x#b '#' \"#\"", ["a|x#b|#|#"]),
        ("cat <<E\n hi $X `a b`\nE", ["cat", "a|b"]),
        ("cat <<E;a\nE\nb", ["cat", "a", "b"]),
        ("cat <<A - <<'B' && c\n$(a)\nA\n$(b)\nB\nd", ["cat|-", "c", "a", "d"]),
        ("a -f<<E\nE", ["a|-f"]),
        ('cat <<"E\'"\nE\n: "\nE\'\na b\n#"', ["cat", "a|b"]),
        ("a <x $'b'c\"\"\\d", ["a|bcd"]),
        ("echo `echo a``b c`", ["b|c"]),
        ("x=\\\n a; A=1 x+=\\\n\tb", ["a", "b"]),
        ("time (a); time -p { b; }; ! time -- A=1 c", list("abc")),
        ("x=$ a b; x+=$  c", ["a|b", "c"]),
        ("", []),
        ("  \n", []),
    ]:
        assert commands(line) == found, line


def test_words_are_what_is_left_of_them_without_their_quotes() -> None:
    for line, found in [
        (r"\rm -r\f 'a b' \"c", 'rm|-rf|a b|"c'),
        ("r\"m\" -r'f' $'/\\n\\'a' $'\\x2f' $'\\101'", "rm|-rf|/\n'a|/|A"),
        ("rm \\\n  x", "rm|x"),
        ('rm "a\\$b\\"c\\`d\\e"', 'rm|a$b"c`d\\e'),
        ("rm '' \"\"", "rm||"),
        (
            'rm ~ ~/x "~" \'~/y\' a~ "$HOME"/z ${HOME}',
            f"rm|{HOME}|{HOME}/x|~|~/y|a~|{HOME}/z|{HOME}",
        ),
        ("rm ~root $x \"$y\" a$z $1 $@ $'\\u00e9'", "rm|_|_|_|a_|_|_|_"),
        ("rm {a,b} x{1..3} {} HEAD@{1}", "rm|_|x_|{}|HEAD@{1}"),
        ("rm \"${x//$'\\n'/ }${y:-'a b'}${z:-\"c\"}\"", "rm|___"),
        ("rm “é” ünï", "rm|“é”|ünï"),
        ("git commit -m \"$(cat <<'E'\nit's `a` $(b)\nE\n)\"", "cat"),
    ]:
        assert commands(line)[0] == found, line


def test_a_text_by_which_agents_write_a_message_is_known() -> None:
    line = "git commit -m \"$(cat <<'E'\nit's `a` $(b)\nE\n)\""
    assert commands(line)[1] == "git|commit|-m|it's `a` $(b)"
    assert commands(line.replace("'E'", "E", 1).replace("`a` $(b)", ""))[1].endswith("_")


def test_a_home_that_the_line_may_change_is_not_known() -> None:
    assert commands("HOME=/x; rm $HOME")[0] == "rm|_"
    assert commands("read HOME; rm ~")[0] == "rm|_"


def test_globs_keep_what_was_quoted() -> None:
    words = read("ls *.py \"*.c\" a\\*b '['x*").commands[0].words[1:]
    assert [word.pattern for word in words] == ["*.py", "", "", "[[]x*"]
    assert [word.text for word in words] == ["*.py", "*.c", "a*b", "[x*"]


def test_what_is_a_command_again_is_read_too() -> None:
    for line, found in [
        ("bash -lc 'a && b c'", ["a", "b|c"]),
        ("sudo -u root env X=1 sh -c 'a'", ["a"]),
        ("bash -euo pipefail -c 'a' name", ["a"]),
        ("command a; exec b; noglob c; builtin cd /", list("abc")),
        ("command -v a; type b; trap - EXIT; kill -l", []),
        ("find . -exec a {} + -o -exec sh -c 'b $0' {} \\;", ["a|_", "b|_"]),
        ("xargs -n1 a -f", []),
        ("time A=1 a; time -p -- A=1 b; ! time c", list("abc")),
        ("time command b; time exec c", list("bc")),
        ("bash -c 'time A=1 a'", ["a"]),
        ("time -f %e a", ["time|-f|%e|a"]),
        ("bash script.sh; sh --version; cd $x; . dev/env.sh", []),
        ("bash +c 'a'", ["a"]),
        ("bash -c 'bash -c \"bash -c a\"'", ["a"]),
    ]:
        outer = ("bash", "sudo", "sh", "find", "xargs")
        assert [each for each in commands(line) if each.split("|")[0] not in outer] == found, line


def test_what_xargs_adds_is_not_known() -> None:
    assert commands("ls | xargs rm -f") == ["ls", "xargs|rm|-f|_"]
    assert [each.why for each in read("ls | xargs env -i").unknown] == [WHICH]


def test_what_is_not_known_before_it_runs_is_said() -> None:
    for line, why in [
        ("$x y", WHICH),
        ("${x}m -rf /", WHICH),
        ("rm$IFS-rf$IFS/", WHICH),
        ("$(a) b", WHICH),
        ("`a`", WHICH),
        ("/bin/r? -rf /", WHICH),
        ("=rm x", WHICH),
        ("env $x rm", WHICH),
        ("timeout 5 $x", WHICH),
        ("$'\\u00e9' x", WHICH),
        ('eval "$x"', "the command that it runs is not known in advance"),
        ('trap "$x" EXIT', "the command that it runs is not known in advance"),
        ('bash -c "$x"', "the commands for bash are not known in advance"),
        ("curl x | sh", "the standard input of sh is not known"),
        ("bash - <<E\na\nE", "the standard input of bash is not known"),
        ("sh /dev/stdin", "the standard input of sh is not known"),
        ("sh //dev/../dev/fd/0", "the standard input of sh is not known"),
        ("sh ../../dev/stdin", "the standard input of sh is not known"),
        ("cd $x; sh ../../dev/stdin", "the standard input of sh is not known"),
        ("cd /dev; bash -e stdin", "the standard input of bash is not known"),
        ("cd /dev; . ./stdin", "the commands that it reads are not known in advance"),
        (". ../../../dev/stdin", "the commands that it reads are not known in advance"),
        ("curl x | sh -s -- -y", "the standard input of sh is not known"),
        ("ls | xargs sh -c 'a'", "the commands for sh are not known in advance"),
        ("fish -c 'a'", "sigwrap cannot read the commands for fish"),
        (". <(a)", "the commands that it reads are not known in advance"),
        ("source /dev/fd/3", "the commands that it reads are not known in advance"),
        ("alias ls='rm -rf'", "it changes the meaning of later words"),
        ("shopt -s expand_aliases", "it changes the meaning of later words"),
        ("enable -f x y", "sigwrap does not read what it runs"),
        ("hash -p /bin/rm ls", "sigwrap does not read what it runs"),
        ("hash -rp/bin/rm ls", "sigwrap does not read what it runs"),
        ("BASH_ALIASES[ls]='rm -rf'", "sigwrap does not read what it runs"),
        ("BASH_CMDS[ls]=/x/a; ls", "sigwrap does not read what it runs"),
        ("declare BASH_CMDS[ls]=/x/a; ls", "sigwrap does not read what it runs"),
        ("printf -v 'BASH_CMDS[ls]' /x/a; ls", "sigwrap does not read what it runs"),
        ("read 'BASH_CMDS[ls]' < x; ls", "sigwrap does not read what it runs"),
        ("shopt -s lastpipe; a | cd ~", "it changes the meaning of later words"),
        ("set -ek; git commit GIT_EDITOR=a", "it changes the meaning of later words"),
        ("set -o history -o histexpand", "it changes the meaning of later words"),
        ("set -P", "it changes the meaning of later words"),
        ("shopt -s nullglob cdable_vars", "it changes the meaning of later words"),
        ('printf -v BASH_C"M"DS[ls] /x/a; ls', "sigwrap does not read what it runs"),
        ("cat() { a; }", "it defines a function"),
        ("function exec { a; }", "it defines a function"),
        ("git config alias.x push; git x --force", "sigwrap does not read what it runs"),
        ("bash -O lastpipe -c 'a | cd'", "bash has options that change the meaning of words"),
        ("bash -euko pipefail -c a", "bash has options that change the meaning of words"),
        ("sh --posix -c a", "sh has options that change the meaning of words"),
        ("zsh -4c a", "zsh has options that change the meaning of words"),
        ("zsh -c 'repeat 2 a'", "zsh may read its line differently than bash"),
        ("zsh -c ': | cd /x; a'", "zsh may read its line differently than bash"),
        ("sh -c '[[ x || a ]]'", "sh may read its line differently than bash"),
        ("sh -c 'a .*/b'", "sh may read its line differently than bash"),
        (
            "git -c alias.x='!a ~/.[^s]sh' x",
            "sh may read its line differently than bash",
        ),
        ("dash -c '((a))'", "dash may read its line differently than bash"),
        ("env SHELLOPTS=keyword bash -c a", "sigwrap does not read what it runs"),
        ("SHELL=/x/a script -qc b /dev/null", "sigwrap does not read what it runs"),
        ("BASH_ENV='$X' bash -c a", "sigwrap does not read what it runs"),
        ("CC='a #' make", "sigwrap does not read what it runs"),
        ("GIT_SEQUENCE_EDITOR=tee git rebase -i x", "sigwrap does not read what it runs"),
        ("declare -n r=GIT_EDITOR; r=a", "the variable that it sets is not known in advance"),
        ("export ${x}ENV=a", "the variable that it sets is not known in advance"),
        ('f() { local -x "$1"; }', "the variable that it sets is not known in advance"),
        ("read ${x}4 < y", "the variable that it sets is not known in advance"),
        ("/proc/self/exe -c a", WHICH),
        ("env /proc/$$/exe a", WHICH),
        ("/dev/fd/3 a 3< /bin/b", WHICH),
        ("exec 3</bin/b; timeout 5 /proc/self/fd/3 a", WHICH),
        ("PATH=/dev:$PATH; . stdin", "the commands that it reads are not known in advance"),
        ("env -u X -S 'a b'", WHICH),
        ("env -u X -S'a b'", WHICH),
        ('x=I; tar -cf y "-$x" a b', "sigwrap does not read what it runs"),
        ('x=filter; split "--$x" a b', "sigwrap does not read what it runs"),
        ("rm -rf /dev/./fd/3/a; cd /proc/.//self/./cwd/.. && $x", WHICH),
        ("env -C /dev bash stdin", "the standard input of bash is not known"),
        ("a" + " b" * 1001, "it has too many words"),
        ("bash --rcfile /dev/stdin -i", "bash has options that change the meaning of words"),
        ("cat <<E''\nE\na\nE''", "it is not clear where a here-document ends"),
        ("env 'BASH_ENV=$(a)' bash -c b", "the shell may run the text in its quotes"),
        (r"PS4='\044(a)'; set -x", "sigwrap does not read what it runs"),
        ("PS4=$1; set -x", "sigwrap does not read what it runs"),
        ("TAR_OPTIONS='\"-Ia\"' tar xf x", "sigwrap does not read what it runs"),
        ("env -S $'a\\vb'", WHICH),
        (r"""git -c 'alias.p="pu\sh" --force' p""", "sigwrap does not read what it runs"),
        ("coproc a", "sigwrap does not read what it runs"),
        ("mapfile -C a x", "sigwrap does not read what it runs"),
        ("readarray -tC a x", "sigwrap does not read what it runs"),
        ("jobs -x a", "sigwrap does not read what it runs"),
        ("fc -s", "sigwrap does not read what it runs"),
        ("curl x | sudo -sE", "the standard input of its shell is not known"),
        ("curl x | su", "sigwrap does not read what it runs"),
        ("parallel ::: a", "sigwrap does not read what it runs"),
        ('read x; : "${x@P}"', "the shell may run the text of a value"),
        ("x='$'; PS4='${x@P}'; set -x", "the shell may run the text of a value"),
        ("printf -v 'x[$(a)]' y", "the shell may run the text in its quotes"),
        ("[[ -v 'x[$(a)]' ]]", "the shell may run the text in its quotes"),
        ("x='a[$(b)]'; ((x))", "the shell may run the text in its quotes later"),
        ("read x <<< 'a[$(b)]'; ((x))", "the shell may run the text in its quotes"),
        ("f() { (( $1 )); }; f 'a[$(b)]'", "the shell may run the text in its quotes"),
        ("o='('; x='a[$'$o'b)]'; let x", "the shell may run the text in its quotes"),
        (
            "while read x; do [ -v $x ]; done <<'E'\na[`b`]\nE",
            "the shell may run the text in its quotes",
        ),
        ("bash -c '(( $0 ))' 'a[$(b)]'", "the shell may run the text in its quotes"),
        ("(( '$(a)' ))", "the shell may run the text in its quotes"),
        ("z=a; for x in 'a[$(b)]'; do c ${z:x}; done", "the shell may run the text in its quotes"),
        ("a['b[$(c)]']=1", "the shell may run the text in its quotes"),
        ("declare -a 'a=(<(b))'", "the shell may run the text in its quotes"),
        ('declare -a "a=($x)"', "the shell may run the text in its quotes"),
        ("> /dev/tcp/192.0.2.1/80", "the shell itself opens a connection"),
        ("kill -9 -1 $!", "its target is not known in advance"),
        ("kill -- -1 %1", "its target is not known in advance"),
        ("kill %1 2>f -1", "its target is not known in advance"),
        ("kill -9 1", "its target is not known in advance"),
        ("sudo pkill -f node", "its target is not known in advance"),
        ("time $x a", WHICH),
        ("time . /dev/stdin", "the commands that it reads are not known in advance"),
        ("time mapfile -C a x", "sigwrap does not read what it runs"),
        ("time printf -v 'x[$(a)]' y", "the shell may run the text in its quotes"),
        ("time x['$(a)']=1 b", "the shell may run the text in its quotes"),
        ("time command kill 1", "its target is not known in advance"),
        ("time kill %1 %2 x", "its target is not known in advance"),
        ("a\0b", "it contains a NUL character"),
        ("a\r\nb", "it contains a carriage return"),
        ("a \ud800", "it contains a lone surrogate"),
        ("a" * (MAX_BYTES + 1), "it is longer than 256 KiB"),
        ("( " * 200 + "a" + ")" * 200, "it is nested too deeply"),
        ("$(" * 200 + "a" + ")" * 200, "it is nested too deeply"),
    ]:
        assert why in [each.why for each in read(line).unknown], line


def test_own_jobs_are_signalled_and_texts_printed() -> None:
    for line in ("kill %1", 'kill -9 "$!" %2 2>f', "printf '%s' -v x"):
        assert read(line).unknown == (), line


def test_what_cannot_be_parsed_is_said() -> None:
    for line in [
        "a; ; b",
        "{rm,-rf,/}",
        "r\\\nm -rf /",
        "cat <<EF\nE\\\nF\na\nEF",
        "cat <<-EF\n\\\n\tEF\na\nEF",
        "cat <<E\n$\\\n(a)\nE",
        "cat <<E\na \\\nE\n'$(b)'\nE",
        "cat <<''\n\na\n",
        "cat <<A && cat <<'B'\n$(a)\nB\nA",
        "echo 'abc",
        "[[ a =~ (#x) ]]; a\n[[ b ]]",
        'echo "abc',
        "a (b)",
        "if a; then b",
        "a )",
        'a "$\\\n(b)"',
        "a & b\n\\\nc",
        "exec {fd}>x a",
        "sh 0<x",
        "echo $'\\\\'; a\necho $'''",
        'echo "${x#\\}<(a)}"',
        "echo `echo \\`a\\``",
        "echo `echo \\$(a)`",
        ': "${x:-`a`}"',
        'echo "${x:-\'}"; a; echo "\'}"',
        "echo ${ a; }",
        "echo ${|a; }",
        "time \\\n-p a",
        "x=$(cat <<'E'\nE)\na\nE\n)",
        "fi",
        "&& a",
    ]:
        assert read(line).unknown, line


def test_quoted_text_is_asked_about_where_the_shell_evaluates_values() -> None:
    for line in [
        "n=0; n=$(expr $n + 1); echo 'a `b` $(c)'",
        "n=0; ((n++)); n=$((n + 1)); echo 'a b'",
        "[ $n -eq 1 ]; node -v; [[ -f a ]] && echo '`b`'",
    ]:
        assert read(line).unknown == (), line
    for line in [
        "((n++)); n='a'; echo '`b`'",
        "n=1'a'; ((n)); echo '`b`'",
        "read n; ((n)); echo '`b`'",
        "((_)); echo '`b`'",
        "(($1)); echo '`b`'",
    ]:
        assert read(line).unknown, line


def test_a_line_may_go_on_in_the_next() -> None:
    for line in [
        "a \\\n  b",
        "a\\\n  b",
        "a 'b\\\nc' \"d\\\ne\" # f\\\n",
        "cat <<'E'\na\\\nb\nE",
        "cat <<E\na && \\\n  b\nE",
    ]:
        assert read(line).unknown == (), line


def test_what_a_pattern_runs_is_not_overlooked() -> None:
    for line in [
        'echo "${f%$(a)}.o"',
        "echo ${f/<(a)/x}",
        'echo "${f^^$(a)}"',
        'echo "${f,,[$(a)]}"',
        'echo "${@#*$(a)}"',
        'echo "${f%${g#>(a)}}"',
        "cat <<E\n${f%$(a)}\nE",
        "x=${f%$(a)}",
        "case ${f%$(a)} in x) ;; esac",
        "[[ x =~ <(a) ]]",
        "[[ x =~ a(`b`)c ]]",
        "echo >&'$(a)'",
    ]:
        found = read(line)
        assert found.unknown or {"a", "b"} & {*shown(found)}, line


def test_a_pattern_that_runs_nothing_is_read() -> None:
    for line in [
        'echo "${f%.o}" ${f##*/} "${f//[^a-z]/_}" ${f^^} "${f:1:2}" "${f//\\//_}"',
        'echo "${f%\\$(a)}" \'${f%$(a)}\' $\'`a`\' "${f%"$g"}"',
        "[[ $x =~ ^v([0-9]+)$ && $y =~ 'a'b ]] # ${f%$(a)}",
        "cat <<'E'\n${f%$(a)} `a`\nE",
        "cat <<E\nx \\$(a) \\`a\\` ${f%.o}\nE",
    ]:
        assert read(line).unknown == (), line


def test_a_dash_before_a_here_document_is_a_word() -> None:
    for line, found in [
        ("python3 - <<'E'\nx\nE", ["python3|-"]),
        ("a && b -f - <<E\nE", ["a", "b|-f|-"]),
        ("a - 2>f <<E b\nE", ["a|-|b"]),
        ("a - \\\n<<E | b\nE", ["a|-", "b"]),
    ]:
        assert commands(line) == found, line


def test_redirections_are_reads_and_writes() -> None:
    line = read('a < b > c 2>> d &> e 2>&1 >&2 >&f <> g >| h; > i; cat <<< x > "$y"')
    used = [(use.writes, use.word.text) for use in line.files]
    assert (False, "b") in used
    assert {text for writes, text in used if writes} >= {"c", "d", "e", "f", "h", "i", "\0"}


def test_a_redirection_has_the_folders_of_its_part_of_a_list() -> None:
    for line, folders in [
        ("cd a && x >f", ("/p/a",)),
        ("true && cd a && x >f", ("/p/a",)),
        ("cd a || x >f", ("/p",)),
        ("cd a && (x) >f", ("/p/a",)),
        ("cd a && x | y >f", ("/p/a",)),
        ("cd a && x 2>&1 | y >f", ("/p/a",)),
        ("cd a && x <<E >f\nE", ("/p/a",)),
        ("cd a && { cd b; } >f", ("/p/a",)),
        ("{ cd a; } >f", ("/p",)),
        ("(cd a && x) >f", ("/p",)),
    ]:
        assert [use.folders for use in read(line).files] == [folders], line


def test_a_command_has_the_folders_in_which_it_may_be() -> None:
    for line, folders in [
        ("cd a && x", ("/p/a",)),
        ("cd a; x", ("/p/a", "/p")),
        ("cd a || x", ("/p",)),
        ("! cd a && x", ("/p",)),
        ("cd a && cd ../b && x", ("/p/b",)),
        ("(cd a && y) && x", ("/p",)),
        ("cd a | x", ("/p",)),
        ("cd && x", (HOME,)),
        ("cd - && x", ("",)),
        ('cd "$y" && x', ("",)),
        ("popd && x", ("",)),
        ("while x; do cd ..; done", ("/p", "/", "")),
        ("while x; do c''d ..; done", ("/p", "/", "")),
        ("if a; then cd b; else x; fi", ("/p", "/p/b")),
        ("cd a && bash -c 'x'", ("/p/a",)),
        ("HOME=/q bash -c 'cd && x'", ("",)),
        ("for i in 1 2; do x; (cd a); done", ("/p",)),
        ("cd -- -a && x", ("/p/-a",)),
        ("cd -P a && x", ("", "/p", "/p/a")),
        ("pushd -n a && x", ("", "/p", "/p/a")),
        ("cd /proc/self/cwd/.. && x", ("",)),
        ("cd a && cd b && pushd -1 && x", ("",)),
        ("env -C a/b bash -c x", ("", "/p/a/b")),
        ("unset H\\OME; cd && x", ("",)),
        ("env -i bash -c 'cd && x'", ("",)),
        ("IFS=/; cd $HOME && x", ("",)),
        ("cd /dev/fd/3 && x", ("",)),
        ("for i in cdrom; do x; done", ("/p",)),
        ("cd a && y >f | x", ("/p/a",)),
        ("cd a && y >f | z && x", ("/p/a",)),
        ("cd a <<E && x\nE", ("/p/a",)),
        ("cd a && y <<E | x\nE", ("/p/a",)),
        ("y <<E && cd a\nE\nx", ("/p", "/p/a")),
        ("!\\\n cd a; x", ("/p", "/p/a")),
        ("if y; then :; else\\\n cd a; fi; x", ("/p", "/p/a")),
    ]:
        found = [each.folders for each in read(line).commands if each.words[0].text == "x"]
        assert {each for every in found for each in every} == {*folders}, line


def test_a_program_may_run_under_another_name() -> None:
    for line in ["exec -a rm busybox", "exec -cla rm busybox", "env -a rm busybox", "env -ia rm x"]:
        assert read(line).unknown, line


def test_variables_of_the_line_are_known() -> None:
    line = read("A=1 b; export C=2; declare D; E[0]=x; LD_PRELOAD=f g")
    assert line.variables >= {"A", "C", "E", "LD_PRELOAD"}


def test_a_line_is_bounded_in_time_and_parts() -> None:
    started = time.process_time()
    assert read("a;" * 30_000).unknown
    assert read("PAGER=a;" * 30_000).unknown
    assert len(read("a;" * (MAX_COMMANDS + 5)).commands) == 1  # all the same
    line = read("; ".join(f"a {number}" for number in range(MAX_COMMANDS + 5)))
    assert len(line.commands) == MAX_COMMANDS
    assert line.unknown[0].why == "the line has too many commands"
    assert read("for i in a; do " * 35 + "cd b" + "; done" * 35).unknown
    assert read("bash -c " * 3 + "'a'").commands
    assert time.process_time() - started < 20
