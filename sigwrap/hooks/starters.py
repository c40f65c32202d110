"""Programs that run another one, or a shell's line, and where in their words that stands.

A table, from which hooks/started.py reads. Those that only put something before a command (`env`,
`nice`, `sudo`) are in policy/judge/wrappers.py, where a run needs them too. An option that isn't in
the table may take the next word or not: then it isn't known which program is run.
"""

from __future__ import annotations

from collections.abc import Mapping

from sigwrap.hooks.git_starters import STARTERS_OF_GIT
from sigwrap.hooks.option_starters import STARTERS_OF_OPTIONS
from sigwrap.hooks.starter import EVERYWHERE, Starter, Then

_SAYS_ONLY = "--help --version"
_SAYS = f"-h -V {_SAYS_ONLY}"
_PERSONALITY = Starter(
    short="BFILRSTXZ3vhV",
    long="32bit fdpic-funcptrs short-inode addr-compat-layout addr-no-randomize whole-seconds "
    "sticky-timeouts read-implies-exec mmap-page-zero 3gb 4gb uname-2.6 verbose list show? help "
    "version",
    nothing=f"{_SAYS} --list --show",
    shell=True,
)
_SU = Starter(
    Then.SHELL,
    "c:fg:G:lmpPTs:u:hVw:",
    "command= session-command= fast login preserve-environment shell= group= supp-group= pty "
    "no-pty user= whitelist-environment= help version",
    options_behind=EVERYWHERE,
    lines="-c --command --session-command",
    moves="- -l --login",
    unread="-s --shell",
    nothing=_SAYS,
)
STARTERS: Mapping[str, Starter] = {
    "strace": Starter(
        short="a:Ab:cCdDe:E:fFhiI:knNo:O:p:P:qrs:S:tTu:U:vVwxX:yYzZ",
        long="abbrev= absolute-timestamps? argv0= arg0= attach= columns= const-print-style= "
        "daemonize? debug decode-fds? decode-pids= detach-on= env= failed-only fault= follow-forks "
        "help inject= instruction-pointer interruptible= kvm= no-abbrev output-append-mode "
        "output-separately output= quiet? raw= read= relative-timestamps? seccomp-bpf "
        "secontext? signal= stack-trace-frame-limit= stack-traces? status= string-limit= "
        "strings-in-hex? successful-only summary summary-columns= summary-only summary-sort-by= "
        "summary-syscall-overhead= summary-wall-clock syscall-limit= syscall-number syscall-times? "
        "tips? trace-fds= trace-path= trace= user= verbose= version write=",
        piped="-o --output",
        assigns="-E --env",
        nothing=_SAYS,
    ),
    "ltrace": Starter(
        short="a:A:bcCD:e:fF:hil:Ln:o:p:rs:StTu:Vw:x:",
        long="align= config= debug= demangle help indent= library= no-signals output= version "
        "where=",
        piped="-o --output",
        nothing=_SAYS,
    ),
    "valgrind": Starter(short="hqvd", long="*", nothing=f"-h {_SAYS_ONLY}"),
    "unshare": Starter(
        short="mhuinpUCTVfrcR:w:S:G:l:",
        long="mount? uts? ipc? net? pid? user? cgroup? time? fork forward-signals map-user= "
        "map-group= map-users= map-groups= map-root-user map-current-user map-auto map-subids "
        "kill-child? mount-proc? mount-binfmt? load-interp= owner= propagation= setgroups= "
        "keep-caps root= wd= setuid= setgid= monotonic= boottime= help version",
        moves="-R -w --root --wd",
        unread="-l --load-interp",
        shell=True,
        nothing=_SAYS,
    ),
    "nsenter": Starter(
        short="ahVt:m::u::i::n::p::C::U::T::S:G:r::w::W:eFZcN:",
        long="all help version target= mount? uts? ipc? net? pid? cgroup? user? user-parent time? "
        "setuid= setgid= preserve-credentials keep-caps root? wd? wdns= env no-fork join-cgroup "
        "follow-context net-socket=",
        moves="*",
        shell=True,
        nothing=_SAYS,
    ),
    "setpriv": Starter(
        short="dhV",
        long="dump nnp no-new-privs ambient-caps= inh-caps= bounding-set= list-caps ruid= euid= "
        "rgid= egid= reuid= regid= clear-groups keep-groups init-groups groups= securebits= "
        "pdeathsig= ptracer= selinux-label= apparmor-profile= landlock-access= landlock-rule= "
        "seccomp-filter= reset-env help version",
        nothing=f"{_SAYS} -d --dump --list-caps",
    ),
    "setarch": _PERSONALITY._replace(operands=1, options_behind=1, first_operand_first=True),
    **dict.fromkeys(("linux32", "linux64", "i386", "x86_64", "uname26"), _PERSONALITY),
    "prlimit": Starter(
        short="p:o:c::d::e::f::i::l::m::n::q::r::s::t::u::v::x::y::hV",
        long="pid= output= noheadings raw verbose core? data? nice? fsize? sigpending? memlock? "
        "rss? nofile? msgqueue? rtprio? stack? cpu? nproc? as? locks? rttime? help version",
        nothing=f"{_SAYS} -p --pid",
    ),
    "systemd-run": Starter(
        short="hH:M:u:p:rdE:tPqGSC:vi",
        long="help version no-ask-password user system host= machine= scope unit= property= "
        "description= slice= slice-inherit no-block remain-after-exit wait send-sighup "
        "service-type= uid= gid= nice= working-directory= same-dir setenv= pty pty-late pipe quiet "
        "collect shell path-property= socket-property= on-active= on-boot= on-startup= "
        "on-unit-active= on-unit-inactive= on-calendar= on-timezone-change on-clock-change "
        "timer-property= capsule= expand-environment= ignore-failure background= job-mode= json= "
        "verbose no-pager root-directory= same-root-dir",
        assigns="-E --setenv",
        moves="*",
        nothing=f"-h {_SAYS_ONLY}",
        unread="-S --shell",
        unread_values="exec",
    ),
    "systemd-inhibit": Starter(
        short="h",
        long="help version no-pager no-legend no-ask-password what= who= why= mode= list",
        nothing=f"-h --list {_SAYS_ONLY}",
    ),
    "systemd-cat": Starter(
        short="ht:p:",
        long="help version identifier= priority= stderr-priority= level-prefix= namespace=",
        nothing=f"-h {_SAYS_ONLY}",
    ),
    "pkexec": Starter(
        short="u:", long="user= disable-internal-agent keep-cwd help version", moves="*", shell=True
    ),
    "fakeroot": Starter(
        short="l:f:i:s:ub:hv",
        long="lib= faked= unknown-is-real fd-base= help version",
        nothing=f"-h -v {_SAYS_ONLY}",
        shell=True,
    ),
    "dbus-run-session": Starter(long="config-file= dbus-daemon= help version", nothing=_SAYS_ONLY),
    **dict.fromkeys(("gosu", "su-exec"), Starter(operands=1)),
    **dict.fromkeys(
        ("tini", "tini-static", "catatonit"),
        Starter(short="p:sgwvle:hP", long="version", nothing="-h --version"),
    ),
    "dumb-init": Starter(
        short="cr:vhV", long="single-child rewrite= verbose help version", nothing=_SAYS
    ),
    "perf": Starter(
        Then.SUBCOMMAND, "hv", "help version no-pager paginate", nothing=f"-h -v {_SAYS_ONLY}"
    ),
    **dict.fromkeys(
        ("perf stat", "perf record", "perf trace"),
        Starter(
            short="ade:F:ghI:o:p:qr:st:vx:",
            long="all-cpus append call-graph= count= detailed duration= event= field-separator= "
            "filter= freq= interval-print= no-inherit output= pid= post= pre= quiet repeat= "
            "summary sync tid= verbose",
            unread="--pre --post",
        ),
    ),
    "choom": Starter(short="n:p:hV", long="adjust= pid= help version", nothing=f"{_SAYS} -p --pid"),
    "ssh-agent": Starter(short="cDdkst:Tua:E:O:P:"),
    "gpg-agent": Starter(
        short="qvsch",
        long="daemon server supervised homedir= options= sh csh quiet verbose help version "
        "default-cache-ttl= max-cache-ttl= pinentry-program= enable-ssh-support",
        nothing=f"-h {_SAYS_ONLY}",
        unread="--pinentry-program",
    ),
    **dict.fromkeys(("pyenv", "rbenv", "nodenv"), Starter(Then.SUBCOMMAND, long="help version")),
    **dict.fromkeys(("pyenv exec", "rbenv exec", "nodenv exec"), Starter()),
    "cmake": Starter(Then.NOTHING, "E", words="-E"),  # what it has by a program's name is like that
    "chdir": Starter(operands=1, moves="*"),  # only cmake's
    "debconf": Starter(
        short="p:f:o:h", long="owner= frontend= priority= terse help", nothing="-h --help"
    ),
    "cttyhack": Starter(),
    "unbuffer": Starter(short="p"),
    "start-stop-daemon": Starter(
        Then.NOTHING,
        "SKTHVx:n:u:g:c:r:d:N:P:I:k:bCmoqvta:s:p:R:O:",
        "exec= startas= start stop",
        options_behind=EVERYWHERE,
        unread="-x -a --exec --startas",
    ),
    "dpkg-architecture": Starter(
        Then.NOTHING, "a:t:A:T:W:P:e:i:q:slufLc:", options_behind=EVERYWHERE, unread="-c"
    ),
    # Their own language has the shell run lines, or they run whatever they find.
    **dict.fromkeys(
        "capsh run-parts tmux screen ed ex vi vim view vimdiff nvim".split(),
        Starter(Then.NOTHING, unread="*"),
    ),
    "su": _SU,
    "runuser": _SU._replace(words="-u --user"),
    "sg": Starter(Then.ONE_WORD, "c", operands=1, options_behind=1, moves="-", shell=True),
    "newgrp": Starter(Then.SHELL, options_behind=EVERYWHERE, moves="-"),
    "script": Starter(
        Then.SHELL,
        "aB:c:eE:fI:O:o:qm:T:t::hV",
        "append log-io= command= return echo= flush force log-in= log-out= output-limit= quiet "
        "logging-format= log-timing= timing? help version",
        options_behind=EVERYWHERE,
        lines="-c --command",
        nothing=_SAYS,
    ),
    "flock": Starter(
        short="sexnoFuw:E:hV",
        long="shared exclusive unlock nonblock nb timeout= wait= conflict-exit-code= close no-fork "
        "fcntl verbose start= length= help version",
        operands=1,
        lines="-c --command",
        nothing=_SAYS,
    ),
    "watch": Starter(
        Then.LINE,
        "bcCd::efghn:pq:rs:tvwx",
        "beep color no-color differences? cumulative errexit follow chgexit equexit= interval= "
        "precise no-rerun shotsdir= no-title no-wrap no-linewrap exec help version",
        words="-x --exec",
        nothing=f"-h -v {_SAYS_ONLY}",
    ),
    # Its lines are filled with words from its standard input, or from behind `:::`.
    "parallel": Starter(
        Then.LINE,
        "0a:B:C:D:d:E:e::I:i::j:kL:l::mM:n:N:P:pqrs:S:tTuU:vVwWxXh",
        "arg-file= colsep= delay= delimiter= dry-run env= eta gnu group halt= jobs= joblog= "
        "keep-order line-buffer linebuffer load= max-args= max-procs= memfree= nice= no-notice "
        "no-run-if-empty null pipe pipe-part pipepart progress quiet quote resume results= "
        "retries= shuf silent tag tagstring= timeout= tmpdir= trim= ungroup verbose will-cite "
        "workdir= xargs help version citation",
        nothing=_SAYS_ONLY,
        unread="*",
    ),
    "ssh": Starter(
        Then.LINE,
        "1246aAb:B:c:CD:e:E:fF:gGi:I:J:kKl:L:m:MnNo:O:p:P:qQ:R:sS:tTvVw:W:xXyY",
        operands=1,
        options_behind=1,
        moves="*",
        nothing="-G -N -O -Q -V -W",
        unread="-F",
        unread_values="proxycommand localcommand knownhostscommand remotecommand hostname include "
        "match",
        shell=True,
        on_a_host=True,
    ),
    **dict.fromkeys(
        ("make", "gmake"),
        Starter(
            Then.NOTHING,
            "bC:def:iI:j::kl::no:O::pqrRsStvwW:BE:L",
            "eval= directory= file= makefile= include-dir= jobs? old-file= assume-old= what-if= "
            "new-file= assume-new= environment-overrides",
            options_behind=EVERYWHERE,
            unread="-E --eval",
            reads="-f --file --makefile",
            sets_shell=True,
        ),
    ),
    **STARTERS_OF_OPTIONS,
    **STARTERS_OF_GIT,
}
