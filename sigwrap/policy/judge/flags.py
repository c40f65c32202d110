"""Flags of a command line in any of their spellings, for rules that deny, approve or redirect.

`-rf`, `-r -f`, `-fr` and `--recursive --force` are the same two flags of rm. The table says which
spellings are one option, and which options take a value. In doubt a flag is there: a word that
begins with a hyphen counts even where it may be a value, and the start of a long flag counts for
all flags that begin so. So no rule may allow by a flag, which another word may also undo.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sigwrap.bare.functools import lru_cache
from sigwrap.policy.judge.match import MAX_MATCHED_ARGUMENTS
from sigwrap.policy.judge.subcommand import tool_name
from sigwrap.policy.judge.tools import tool_named
from sigwrap.tuples import NamedTuple

# Spellings of one option are joined by commas: one letter is a short flag, more are a long one.
# `=` after them: the option takes a value. `?`: a short flag may have a value attached. `:xy`: the
# option implies -x and -y; `o=v:xy`: it does so with the value v. `.` first: the options end at the
# first argument that is none.
_REMOVING = "f,force v,verbose preserve-root no-preserve-root "
_CHANGING = "c,changes f,silent,quiet v,verbose R,recursive reference= preserve-root "
_PLACING = (
    "b,backup f,force i,interactive n,no-clobber S,suffix= t,target-directory= "
    "T,no-target-directory v,verbose u,update strip-trailing-slashes Z context "
)
_GIT = "q,quiet v,verbose progress "
_CONTAINER = (
    ". d,detach i,interactive t,tty rm privileged v,volume= mount= p,publish= P,publish-all "
    "e,env= env-file= name= network,net= network-alias= u,user= w,workdir= entrypoint= cap-add= "
    "cap-drop= security-opt= device= pid= ipc= userns= uts= cgroupns= h,hostname= l,label= "
    "label-file= m,memory= c,cpu-shares= cpus= cpuset-cpus= shm-size= ulimit= platform= pull= "
    "restart= gpus= runtime= a,attach= add-host= dns= tmpfs= volumes-from= volume-driver= "
    "log-driver= log-opt= read-only init q,quiet sig-proxy stop-signal= stop-timeout= expose= "
    "group-add= link= ip= "
)
_SHELL = ". c i l,login s x e u v n r,restricted o= O= rcfile,init-file= norc noprofile posix"
_OPTIONS: dict[str, str] = {
    "rm": _REMOVING + "i,interactive I r,R,recursive d,dir one-file-system",
    "rmdir": "p,parents v,verbose ignore-fail-on-non-empty",
    "shred": "f,force n,iterations= random-source= s,size= u,remove v,verbose x,exact z,zero",
    "cp": _PLACING
    + "a,archive:dRp attributes-only copy-contents d H L,dereference l,link P,no-dereference "
    "p,preserve no-preserve= parents R,r,recursive reflink remove-destination sparse= "
    "s,symbolic-link x,one-file-system debug",
    "mv": _PLACING + "debug exchange no-copy",
    "ln": _PLACING + "d,F,directory L,logical P,physical r,relative s,symbolic",
    "install": _PLACING + "c C,compare d,directory D g,group= m,mode= o,owner= p s,strip",
    "mkdir": "m,mode= p,parents v,verbose Z context",
    "chmod": _CHANGING + "no-preserve-root dereference h,no-dereference H L P",
    "chown": _CHANGING + "no-preserve-root dereference h,no-dereference from= H L P",
    "chgrp": _CHANGING + "no-preserve-root dereference h,no-dereference from= H L P",
    "sed": "i,in-place? n,quiet,silent e,expression= f,file= E,r,regexp-extended s,separate "
    "z,null-data u,unbuffered l,line-length= posix debug sandbox follow-symlinks b,binary",
    "tar": "c,create x,extract,get t,list r,append u,update A,catenate,concatenate "
    "d,diff,compare delete f,file= C,directory= z,gzip,gunzip,ungzip j,bzip2 J,xz "
    "a,auto-compress v,verbose k,keep-old-files overwrite O,to-stdout "
    "p,preserve-permissions,same-permissions P,absolute-names X,exclude-from= exclude= "
    "T,files-from= strip-components= I,use-compress-program= to-command= checkpoint-action= "
    "checkpoint w,interactive,confirmation h,dereference g,listed-incremental= "
    "b,blocking-factor= H,format= N,newer,after-date= owner= group= mode= transform,xform= "
    "S,sparse W,verify m,touch remove-files U,unlink-first recursive-unlink same-owner "
    "no-same-owner numeric-owner one-top-level no-recursion",
    "rsync": "a,archive:rlptgoD r,recursive l,links p,perms t,times g,group o,owner D n,dry-run "
    "delete,del delete-before delete-during delete-after delete-delay delete-excluded force "
    "e,rsh= rsync-path= f,filter= exclude= exclude-from= include= include-from= files-from= "
    "v,verbose q,quiet z,compress u,update c,checksum x,one-file-system P progress h "
    "remove-source-files T,temp-dir= B,block-size= bwlimit= chmod= chown= log-file= M= partial "
    "b,backup backup-dir= suffix= H,hard-links A,acls X,xattrs S,sparse i,itemize-changes "
    "R,relative W,whole-file L,copy-links K k C 0,from0 max-delete= password-file= port= "
    "timeout=",
    "find": "H L P D= delete exec execdir ok okdir name= iname= path= ipath= wholename= "
    "regex= iregex= type= xtype= size= user= group= uid= gid= perm= newer= mtime= mmin= atime= "
    "amin= ctime= cmin= maxdepth= mindepth= inum= links= samefile= lname= ilname= fstype= "
    "regextype= printf= fprint= fprint0= fprintf= fls= files0-from= empty print print0 prune "
    "depth xdev mount not a o",
    "curl": "a,append A,user-agent= b,cookie= B,use-ascii c,cookie-jar= C,continue-at= "
    "compressed connect-timeout= d,data,data-ascii= data-binary= data-raw= data-urlencode= "
    "D,dump-header= json= e,referer= E,cert= key= cacert= f,fail F,form= form-string= g,globoff "
    "G,get h,help H,header= i,include I,head j k,insecure K,config= l,list-only L,location "
    "location-trusted m,max-time= M n,netrc netrc-file= N,no-buffer o,output= O,remote-name "
    "output-dir= p,proxytunnel P,ftp-port= preproxy= q,disable Q,quote= r,range= R,remote-time "
    "resolve= retry= retry-delay= s,silent S,show-error t,telnet-option= T,upload-file= u,user= "
    "U,proxy-user= unix-socket= url= v,verbose V,version w,write-out= x,proxy= X,request= "
    "y,speed-time= Y,speed-limit= z,time-cond= Z,parallel 0 1 2 3 4 6 create-dirs oauth2-bearer= "
    "interface= limit-rate= max-redirs=",
    "wget": "b,background c,continue r,recursive O,output-document= o,output-file= "
    "P,directory-prefix= q,quiet v,verbose i,input-file= U,user-agent= header= post-data= "
    "post-file= body-data= body-file= method= no-check-certificate e,execute= N,timestamping "
    "m,mirror l,level= A,accept= R,reject= D,domains= t,tries= T,timeout= Q,quota= "
    "user= password= load-cookies= S k p nc,no-clobber nd,no-directories nv,no-verbose "
    "np,no-parent nH,no-host-directories",
    "git push": _GIT
    + "no-verify all,branches mirror d,delete tags follow-tags signed atomic n,dry-run "
    "receive-pack,exec= repo= f,force force-with-lease force-if-includes u,set-upstream "
    "o,push-option= thin no-thin prune recurse-submodules= 4,ipv4 6,ipv6 porcelain",
    "git reset": "soft mixed hard merge keep q,quiet N,intent-to-add p,patch pathspec-from-file= "
    "pathspec-file-nul recurse-submodules refresh no-refresh U,unified= inter-hunk-context=",
    "git clean": "d f,force i,interactive n,dry-run q,quiet e,exclude= x X",
    "git branch": "d,delete D:df m,move M:mf c,copy C:cf f,force l,list a,all r,remotes "
    "u,set-upstream-to= unset-upstream t? track no-track edit-description contains no-contains "
    "merged no-merged v,verbose q,quiet sort= points-at= format= i,ignore-case column color "
    "abbrev show-current create-reflog",
    "git checkout": "f,force b= B= t? track no-track d,detach l orphan= ours theirs m,merge "
    "conflict= p,patch q,quiet progress overlay no-overlay pathspec-from-file= guess no-guess "
    "ignore-other-worktrees recurse-submodules overwrite-ignore ignore-skip-worktree-bits",
    "git switch": "c,create= C,force-create= d,detach f,force discard-changes m,merge conflict= "
    "orphan= t? track no-track q,quiet progress guess no-guess ignore-other-worktrees",
    "git commit": _GIT
    + "a,all m,message= n,no-verify amend F,file= C,reuse-message= c,reedit-message= fixup= "
    "squash= author= date= s,signoff S,gpg-sign? e,edit no-edit t,template= cleanup= allow-empty "
    "allow-empty-message o,only i,include p,patch u? untracked-files dry-run short branch "
    "porcelain z,null reset-author trailer= status no-status no-gpg-sign",
    "git tag": "d,delete f,force a,annotate s,sign u,local-user= m,message= F,file= l,list "
    "v,verify n? contains points-at= sort= format= e,edit cleanup= create-reflog no-sign "
    "i,ignore-case",
    "git merge": _GIT
    + "n no-verify m,message= F,file= s,strategy= X,strategy-option= ff no-ff ff-only squash abort "
    "continue quit e,edit no-edit S,gpg-sign? into-name= commit no-commit stat "
    "allow-unrelated-histories",
    "git rebase": _GIT + "no-verify i,interactive onto= continue abort skip quit edit-todo x,exec= "
    "f,force-rebase,no-ff s,strategy= X,strategy-option= autosquash autostash root m,merge r? "
    "rebase-merges empty= C= keep-base update-refs S,gpg-sign? n stat no-stat signoff",
    "git add": "A,all u,update f,force n,dry-run p,patch i,interactive N,intent-to-add e,edit "
    "v,verbose refresh ignore-errors ignore-missing chmod= renormalize sparse "
    "pathspec-from-file=",
    "git rm": "f,force r n,dry-run cached q,quiet ignore-unmatch sparse pathspec-from-file=",
    "git fetch": _GIT
    + "f,force p,prune P,prune-tags a,append all t,tags n,no-tags k,keep depth= deepen= "
    "shallow-since= shallow-exclude= unshallow u,update-head-ok upload-pack= j,jobs= "
    "o,server-option= refmap= filter= negotiation-tip= multiple atomic dry-run "
    "recurse-submodules 4 6",
    "git worktree": "f,force b= B= d,detach checkout no-checkout lock reason= q,quiet n,dry-run "
    "v,verbose expire= porcelain orphan",
    "git remote": "v,verbose t= m= f tags no-tags mirror add delete push all n,dry-run p",
    "gh pr merge": "R,repo= admin auto b,body= F,body-file= d,delete-branch disable-auto m,merge "
    "r,rebase s,squash t,subject= match-head-commit= A,author-email=",
    "gh pr review": "R,repo= a,approve b,body= F,body-file= c,comment r,request-changes",
    "gh api": "X,method= f,raw-field= F,field= H,header= i,include q,jq= t,template= input= "
    "cache= hostname= p,preview= paginate silent slurp verbose",
    "docker run": _CONTAINER,
    "docker create": _CONTAINER,
    "docker exec": ". d,detach i,interactive t,tty privileged e,env= env-file= u,user= "
    "w,workdir= detach-keys=",
    "docker rm": "f,force l,link v,volumes",
    "docker down": "v,volumes t,timeout= rmi= remove-orphans",
    "docker rmi": "f,force no-prune",
    "docker build": "t,tag= f,file= push load q,quiet no-cache pull build-arg= target= platform= "
    "o,output= secret= ssh= label= cache-from= cache-to= network= add-host= progress= builder=",
    "docker prune": "a,all f,force filter=",
    "docker system": "a,all f,force volumes filter=",
    "npm": "g,global location=global:g f,force D,save-dev S,save O,save-optional E,save-exact "
    "P,save-prod y,yes s,silent h,help v,version l,long q,quiet w,workspace= ws,workspaces "
    "C,prefix= c,call= m,message=",
    "pnpm": "g,global r,recursive D,save-dev O,save-optional P,save-prod E,save-exact F,filter= "
    "w,workspace-root C,dir= s,silent f,force",
    "pip install": "U,upgrade r,requirement= c,constraint= e,editable= t,target= user root= "
    "prefix= force-reinstall I,ignore-installed no-deps pre i,index-url= extra-index-url= "
    "no-index f,find-links= q,quiet v,verbose no-build-isolation break-system-packages "
    "no-cache-dir dry-run platform= python-version= implementation= abi= src= upgrade-strategy= "
    "no-binary= only-binary= C,config-settings= global-option= report= root-user-action= "
    "progress-bar= trusted-host= require-hashes no-input proxy= retries= timeout= cert= log= "
    "python=",
    "pip uninstall": "y,yes r,requirement= q,quiet v,verbose root-user-action= "
    "break-system-packages",
    "apt-get": "y,yes,assume-yes q,quiet d,download-only s,simulate,dry-run f,fix-broken "
    "allow-unauthenticated force-yes purge reinstall o,option= c,config-file= t,target-release=",
    "dnf": "y,assumeyes q,quiet C,cacheonly b,best nogpgcheck allowerasing",
    "cargo": "q,quiet v,verbose r,release p,package= j,jobs= F,features= f,force n,dry-run",
    "kubectl": "f,filename= n,namespace= A,all-namespaces l,selector= o,output= force all "
    "k,kustomize= R,recursive w,watch grace-period= cascade= dry-run",
    "terraform": "auto-approve destroy var= var-file= target= replace= state= out= chdir= lock "
    "input",
    "systemctl": "f,force now r,recursive a,all q,quiet l,full H,host= M,machine= t,type=",
    "ssh": ". 4 6 A a C f G g K k M N n q s T t V v X x Y y B= b= c= D= E= e= F= I= i= J= L= l= "
    "m= O= o= p= Q= R= S= W= w=",
    "bash": _SHELL,
    "sh": _SHELL,
    "dash": _SHELL,
    "zsh": _SHELL,
}
_SAME_OPTIONS = {"podman": "docker", "apt": "apt-get", "aptitude": "apt-get"}
# `docker image rm` is `docker rm`, with nearly the same options.
_GROUPS = {"docker": ("builder", "compose", "container", "image", "network", "volume")}
_SINGLE_DASH = frozenset({"find", "terraform", "java", "openssl"})
_WHOLE_WORDS = _SINGLE_DASH | {"docker", "gh", "kubectl", "cargo", "pnpm"}  # no abbreviations
_SHELLS = frozenset({"bash", "sh", "dash", "zsh"})  # `-oc NAME LINE`: values follow the letters
_DASH_OPTIONAL = frozenset({"tar"})  # of the first argument: `tar xzf`
_SUBCOMMANDS_DIFFER = frozenset({"git"})  # `git -C` is not `git branch -C`
_MAX_WORDS = 2  # of a subcommand in the table
_OPERANDS = {"ssh": 2}  # it reads options after the host too


class _Options(NamedTuple):
    spellings: Mapping[str, frozenset[str]]  # by each spelling, all of that option
    implied: Mapping[str, str]
    with_value: frozenset[str]
    attached: frozenset[str]
    stop_at_operand: bool
    abbreviated: bool  # the start of a long option is enough


class Flags(NamedTuple):
    """The flags of a command line, as they are written."""

    options: _Options
    found: frozenset[str]
    starts: tuple[str, ...]  # long flags that may be short for others

    def has(self, flag: str) -> bool:
        """Return whether the command line may have this flag in any spelling."""
        wanted = self.options.spellings.get(flag, frozenset((flag,)))
        return not wanted.isdisjoint(self.found) or any(
            len(each) > 1 and each.startswith(self.starts) for each in wanted
        )


def has_table(name: str) -> bool:
    return name in _OPTIONS


def flags_of(name: str, argv: Sequence[str]) -> Flags:
    """Return the flags of a command line; `name` is the program's."""
    return _Scanner(tool_name(name), argv).flags()


class _Scanner:
    def __init__(self, tool: str, argv: Sequence[str]) -> None:
        self._tool = _SAME_OPTIONS.get(tool, tool)
        self._options = _options(tool, self._tool)
        self._argv = argv[: MAX_MATCHED_ARGUMENTS + 1]
        self._words = [self._tool]
        self._found: set[str] = set()
        self._starts: list[str] = []
        self._waiting = ""  # the long option whose value follows
        self._values = 0  # how many of the following arguments are values
        self._may_be_value = False  # of an option that is not in the table
        self._operands = 0

    def flags(self) -> Flags:
        for position, argument in enumerate(self._argv[1:]):
            if not self._read(argument, is_first=position == 0):
                break
        return Flags(self._options, frozenset(self._found), tuple(self._starts))

    def _read(self, argument: str, *, is_first: bool) -> bool:
        """Return whether options may still follow."""
        may_be_value, self._may_be_value = self._may_be_value, False
        is_value, self._values = self._values > 0, max(0, self._values - 1)
        waiting, self._waiting = self._waiting, ""
        if waiting:
            self._found.update(self._implied_by(f"{waiting}={argument}"))
        if argument.startswith("+") and self._tool in _SHELLS:
            self._values += argument[-1] in self._options.with_value
        elif argument == "--":
            return is_value or may_be_value
        elif self._is_option(argument, is_first=is_first):
            if argument.startswith("--") or self._tool in _SINGLE_DASH:
                self._long(argument.lstrip("-"))
            else:
                self._short(argument)
        elif not is_value:
            self._operands += 1
            if self._options.stop_at_operand:
                return may_be_value or self._operands < _OPERANDS.get(self._tool, 1)
            self._operand(argument)
        return True

    def _is_option(self, argument: str, *, is_first: bool) -> bool:
        if argument.startswith("-"):
            return argument != "-"
        return is_first and self._tool in _DASH_OPTIONAL

    def _operand(self, word: str) -> None:
        if len(self._words) > _MAX_WORDS or word in _GROUPS.get(self._tool, ()):
            return
        self._words.append(word)
        key = " ".join(self._words)
        is_first = len(self._words) == 2
        if key in _OPTIONS or (is_first and self._tool in _SUBCOMMANDS_DIFFER):
            self._options = _options("", key)
            self._found.clear()
            self._starts.clear()

    def _long(self, argument: str) -> None:
        name, has_value, _ = argument.partition("=")
        options = self._options
        self._found.add(name)
        self._found.update(self._implied_by(argument))
        self._waiting = "" if has_value else name
        if len(name) == 1 or name not in options.spellings:
            if options.abbreviated:
                self._starts.append(name)
            self._may_be_value = not has_value
        elif name in options.with_value and not has_value:
            self._values += 1

    def _implied_by(self, option: str) -> Iterator[str]:
        """Yield the flags that an option implies with this value: `location=global`."""
        name, _, value = option.partition("=")
        for each, letters in self._options.implied.items():
            if "=" in each and each.startswith(name) and each.endswith(f"={value}"):
                yield from letters

    def _short(self, argument: str) -> None:
        options = self._options
        letters = argument.removeprefix("-")
        self._found.add(letters)  # some tools take long flags with one hyphen
        for at, letter in enumerate(letters, start=1):
            if letter == "=":
                return
            self._found |= {letter, *options.implied.get(letter, "")}
            is_last = at == len(letters)
            if letter in options.with_value:
                if self._tool in _SHELLS or letters == argument:  # as in `tar xfC a.tar dir`
                    self._values += 1
                    continue
                self._values += is_last
                return
            if letter in options.attached:
                return
            if letter not in options.spellings:
                self._may_be_value = is_last


@lru_cache(maxsize=256)
def _options(tool: str, key: str) -> _Options:
    spellings: dict[str, frozenset[str]] = {}
    implied: dict[str, str] = {}
    marked: dict[str, set[str]] = {"=": set(), "?": set()}
    words = _OPTIONS.get(key, "").split()
    known = tool_named(tool)
    if known is not None:
        words += [f"{each.lstrip('-')}=" for each in sorted(known.with_value)]
        words += [each.lstrip("-") for each in sorted(known.flags)]
    for word in words:
        written, _, letters = word.rstrip("=?").partition(":")
        names = frozenset(written.split(","))
        for name in names:
            spellings.setdefault(name, names)
            implied.update({name: letters} if letters else {})
        marked.get(word[-1], set()).update(names)
    return _Options(
        spellings,
        implied,
        frozenset(marked["="]),
        frozenset(marked["?"]),
        words[:1] == ["."],
        key.partition(" ")[0] not in _WHOLE_WORDS,
    )
