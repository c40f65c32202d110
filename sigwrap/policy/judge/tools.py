"""The options of programs, and the subcommands of tools, as the rules about arguments need them.

Spellings of one option are joined by commas: one letter is a short flag, more are a long one.

    o=      the option takes a value
    o?      a short flag may have a value attached
    o:xy    the option implies -x and -y; `o=v:xy` implies them with the value v
    .       first: the options end at the first argument that is none

Without the table, a value would pass for the subcommand: `git -C /srv push`. Options that are not
in it may take a value or not, so both are tried (see `subcommand`).
"""

from __future__ import annotations

from collections.abc import Mapping

from sigwrap.bare import NamedTuple, lru_cache

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
_HELP = "h help version V v q quiet verbose "
_APT = (
    "y,yes,assume-yes q,quiet d,download-only s,simulate,dry-run f,fix-broken "
    "allow-unauthenticated force-yes purge reinstall o,option= c,config-file= t,target-release= "
    "default-release= a= host-architecture= h help version V v verbose u no-install-recommends "
    "allow-downgrades"
)
_PROGRAMS: dict[str, str] = {
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
    "ssh": ". 4 6 A a C f G g K k M N n q s T t V v X x Y y B= b= c= D= E= e= F= I= i= J= L= l= "
    "m= O= o= p= Q= R= S= W= w=",
    "env": "u,unset= C,chdir= a,argv0=",
    "nice": "n,adjustment=",
    "timeout": "k,kill-after= s,signal=",
    "stdbuf": "i,input= o,output= e,error=",
    "ionice": "c,class= n,classdata=",
    "chrt": "T,sched-runtime= P,sched-period= D,sched-deadline=",
    "time": "f,format= o,output=",
    "xargs": "a,arg-file= d,delimiter= E= I= L= n,max-args= P,max-procs= s,max-chars= "
    "process-slot-var=",
    "sudo": "C,close-from= D,chdir= g,group= h,host= p,prompt= R,chroot= r,role= "
    "T,command-timeout= t,type= U,other-user= u,user=",
    "doas": "C= u=",
    "chroot": "userspec= groups=",
    "ld.so": "library-path= inhibit-rpath= audit= preload= argv0= glibc-hwcaps-prepend= "
    "glibc-hwcaps-mask=",
    "bash": _SHELL,
    "sh": _SHELL,
    "dash": _SHELL,
    "zsh": _SHELL,
}
_TOOLS: dict[str, str] = {
    "git": "C= c= git-dir= work-tree= namespace= super-prefix= config-env= attr-source= "
    "list-cmds= shallow-file= v version h help p paginate P no-pager no-replace-objects "
    "no-lazy-fetch no-optional-locks no-advice bare literal-pathspecs glob-pathspecs "
    "noglob-pathspecs icase-pathspecs exec-path html-path man-path info-path",
    "gh": "R= repo= hostname= X= method= f= raw-field= F= field= H= header= q= jq= template= b= "
    "body= body-file= t= title= B= base= input= p= preview= cache= A= author-email= subject= "
    "match-head-commit= h help version",
    "glab": "R= repo= g= group= X= method= h help",
    "npm": "g,global location=global:g f,force D,save-dev S,save O,save-optional E,save-exact "
    "P,save-prod y,yes s,silent h,help v,version l,long q,quiet w,workspace= ws,workspaces "
    "C,prefix= c,call= m,message= userconfig= globalconfig= cache= loglevel= registry= tag= otp= "
    "access= scope= script-shell= node-options= omit= include= package= before= depth= location= "
    "proxy= https-proxy= user-agent= init-module= V verbose d json parseable offline "
    "prefer-offline no-audit no-fund ignore-scripts no-save include-workspace-root "
    "foreground-scripts if-present legacy-peer-deps production no no-install dry-run no-color "
    "no-progress no-optional no-package-lock",
    "pnpm": "g,global r,recursive D,save-dev O,save-optional P,save-prod E,save-exact F,filter= "
    "w,workspace-root C,dir= s,silent f,force filter-prod= loglevel= reporter= "
    "workspace-concurrency= changed-files-ignore-pattern= test-pattern= store-dir= registry= "
    "package= shell-emulator= h help version V v q quiet verbose color no-color offline stream "
    "aggregate-output parallel yes if-present",
    "yarn": _HELP
    + "cwd= cache-folder= modules-folder= registry= mutex= network-timeout= network-concurrency= "
    "use-yarnrc= preferred-cache-folder= global-folder= emoji= proxy= https-proxy= script-shell= "
    "s silent json offline no-progress frozen-lockfile immutable ignore-scripts ignore-engines "
    "non-interactive no-lockfile production",
    "bun": "cwd= c= config= r= preload= env-file= port= p= print= e= eval= define= d= loader= "
    "conditions= main-fields= shell= install= filter= F= h help v version revision hot watch smol "
    "silent b bun inspect if-present",
    "deno": _HELP + "unstable A r reload",
    "pip": _HELP
    + "python= log= proxy= retries= timeout= trusted-host= cert= client-cert= cache-dir= "
    "keyring-provider= exists-action= use-feature= use-deprecated= index-url= i= extra-index-url= "
    "isolated require-virtualenv no-input no-cache-dir disable-pip-version-check no-color debug "
    "no-python-version-warning",
    "pipx": _HELP + "backend= global",
    "uv": _HELP
    + "directory= project= config-file= cache-dir= color= python= p= allow-insecure-host= "
    "python-preference= python-fetch= with= with-editable= with-requirements= from= extra= group= "
    "only-group= no-group= env-file= index= default-index= index-url= i= extra-index-url= "
    "package= index-strategy= resolution= prerelease= exclude-newer= n no-cache native-tls "
    "offline no-progress no-config no-python-downloads preview managed-python no-managed-python "
    "isolated active no-sync locked frozen all-extras no-dev all-packages exact no-project "
    "no-env-file m module s script all-groups dev only-dev",
    "poetry": _HELP + "C= directory= P= project= n no-interaction no-ansi no-plugins",
    "pdm": _HELP + "c= config= p= project= n I L",
    "cargo": "q,quiet v,verbose r,release p,package= j,jobs= F,features= f,force n,dry-run C= "
    "color= config= Z= explain= manifest-path= target-dir= h help version V list locked offline "
    "frozen",
    "rustup": _HELP + "profile=",
    "go": "C=",
    "gem": _HELP + "config-file= norc",
    "bundle": _HELP + "r= retry= j= jobs= gemfile= no-color",
    "composer": _HELP
    + "d= working-dir= n no-interaction no-plugins no-scripts no-cache profile ansi no-ansi",
    "dotnet": "h help info version d diagnostics",
    "conda": _HELP + "n= name= p= prefix= y yes no-plugins",
    "brew": _HELP + "appdir= d debug",
    "apt": _APT,
    "apt-get": _APT,
    "aptitude": _APT,
    "dnf": "y,assumeyes q,quiet C,cacheonly b,best nogpgcheck allowerasing c= config= x= exclude= "
    "excludepkgs= enablerepo= disablerepo= repo= repoid= setopt= installroot= releasever= d= "
    "debuglevel= e= errorlevel= R= randomwait= comment= forcearch= disableplugin= enableplugin= h "
    "help version V v verbose assumeno nobest refresh skip-broken",
    "zypper": _HELP
    + "R= root= D= reposd-dir= C= cache-dir= c= config= p= plus-repo= releasever= n "
    "non-interactive no-gpg-checks gpg-auto-import-keys x s t no-refresh",
    "apk": _HELP
    + "p= root= X= repository= arch= cache-dir= cache-max-age= keys-dir= wait= repositories-file= "
    "progress-fd= f force i interactive U update-cache no-cache allow-untrusted no-progress purge "
    "no-network print-arch",
    "snap": _HELP,
    "flatpak": _HELP + "user system ostree-verbose y",
    "docker": _HELP
    + "H= host= c= context= config= l= log-level= tlscacert= tlscert= tlskey= f= file= p= "
    "project-name= profile= env-file= project-directory= ansi= progress= builder= D debug tls "
    "tlsverify",
    "podman": _HELP
    + "c= connection= url= identity= log-level= root= runroot= storage-driver= storage-opt= "
    "tmpdir= cgroup-manager= conmon= events-backend= module= network-cmd-path= namespace= "
    "hooks-dir= runtime= ssh= volumepath= transient-store= r remote syslog noout",
    "kubectl": "f,filename= n,namespace= A,all-namespaces l,selector= o,output= force all "
    "k,kustomize= R,recursive w,watch grace-period= cascade= dry-run context= cluster= user= "
    "kubeconfig= s= server= token= as= as-group= as-uid= cache-dir= certificate-authority= "
    "client-certificate= client-key= request-timeout= tls-server-name= username= password= "
    "log-flush-frequency= v= vmodule= profile= profile-output= h help insecure-skip-tls-verify "
    "match-server-version warnings-as-errors disable-compression",
    "helm": "n= namespace= kube-context= kubeconfig= kube-apiserver= kube-as-group= kube-as-user= "
    "kube-ca-file= kube-token= kube-tls-server-name= registry-config= repository-cache= "
    "repository-config= burst-limit= qps= h help debug kube-insecure-skip-tls-verify",
    "gcloud": "project= account= configuration= format= verbosity= region= zone= "
    "impersonate-service-account= billing-project= flags-file= filter= access-token-file= h help "
    "q quiet log-http no-user-output-enabled user-output-enabled v version",
    "aws": "profile= region= output= endpoint-url= query= ca-bundle= cli-read-timeout= "
    "cli-connect-timeout= color= cli-binary-format= debug no-verify-ssl no-paginate version "
    "no-sign-request no-cli-pager",
    "terraform": "auto-approve destroy var= var-file= target= replace= state= out= chdir= lock "
    "input help h version v",
    "systemctl": "f,force now r,recursive a,all q,quiet l,full H,host= M,machine= t,type= p= "
    "property= P= state= s= signal= job-mode= o= output= n= lines= root= what= kill-whom= "
    "kill-value= legend= image= timestamp= h help version V v verbose user system no-pager "
    "no-block runtime no-legend no-ask-password failed",
}
# Subcommands with options of their own, or that only rules with `flags` are about.
ANY_TOOL = "any tool"
_SUBCOMMANDS: dict[str, str] = {
    ANY_TOOL: _HELP + "debug json y yes",
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
    "pip install": "U,upgrade r,requirement= c,constraint= e,editable= t,target= user root= "
    "prefix= force-reinstall I,ignore-installed no-deps pre i,index-url= extra-index-url= "
    "no-index f,find-links= q,quiet v,verbose no-build-isolation break-system-packages "
    "no-cache-dir dry-run platform= python-version= implementation= abi= src= upgrade-strategy= "
    "no-binary= only-binary= C,config-settings= global-option= report= root-user-action= "
    "progress-bar= trusted-host= require-hashes no-input proxy= retries= timeout= cert= log= "
    "python=",
    "pip uninstall": "y,yes r,requirement= q,quiet v,verbose root-user-action= "
    "break-system-packages",
}
# Other names of a subcommand: `npm i` is `npm install`.
_ALIASES: dict[str, str] = {
    "gh": "extension:ext,extensions codespace:cs",
    "glab": "mr:merge-request",
    "npm": "install:i,in,ins,inst,insta,instal,isnt,isnta,isntal,isntall,add "
    "ci:ic,clean-install,install-clean,isntall-clean install-test:it "
    "install-ci-test:cit,clean-install-test,sit update:u,up,upgrade,udpate exec:x "
    "uninstall:un,unlink,remove,rm,r link:ln init:create,innit run:run-script,rum,urn test:t,tst "
    "dedupe:ddp dist-tag:dist-tags login:adduser,add-user owner:author view:info,show,v "
    "ls:list,la,ll config:c rebuild:rb docs:home bugs:issues search:find,s,se version:verison "
    "explain:why org:ogr help:hlep",
    "pnpm": "install:i,add update:up,upgrade remove:rm,uninstall,un link:ln run:run-script",
    "bun": "install:i add:a remove:rm create:c",
    "deno": "install:i,add",
    "cargo": "build:b check:c doc:d run:r test:t remove:rm",
    "rustup": "update:upgrade,up toolchain:toolchains",
    "bundle": "install:i",
    "composer": "install:i require:r update:u,upgrade global:g",
    "brew": "install:instal upgrade:up uninstall:rm,remove",
    "dnf": "install:in,localinstall,groupinstall upgrade:up,update,localupdate,upgrade-minimal "
    "remove:erase,rm reinstall:rei downgrade:dg group:groups,grp distro-sync:dsync,dist-upgrade",
    "zypper": "install:in update:up dist-upgrade:dup remove:rm patch:p install-new-recommends:inr",
    "flatpak": "update:upgrade",
    "helm": "uninstall:un,delete,del",
}
# Tools that take the start of a command or an alias, if only one fits.
_COMMANDS: dict[str, str] = {
    "npm": "access approve-scripts audit bugs cache ci completion config dedupe deny-scripts "
    "deprecate diff dist-tag docs doctor edit exec explain explore find-dupes fund get help "
    "help-search hook init install install-ci-test install-scripts install-test link login logout "
    "ls org outdated owner pack ping pkg prefix profile prune publish query rebuild repo restart "
    "root run sbom search set shrinkwrap stage star stars start stop team test token trust "
    "undeprecate uninstall unpublish unstar update version view whoami",
    "gem": "build cert check cleanup contents dependency environment exec fetch generate_index "
    "help info install list lock mirror open outdated owner pristine push query rdoc rebuild "
    "search server signin signout sources specification stale uninstall unpack update which yank",
    "conda": "activate clean compare config create deactivate doctor env export index info init "
    "install list notices package remove rename repoquery run search uninstall update upgrade",
}
_SAME_AS = {
    "npx": "npm",
    "yarnpkg": "yarn",
    "hub": "git",
    "nerdctl": "docker",
    "docker-compose": "docker",
    "tofu": "terraform",
    "terragrunt": "terraform",
    "yum": "dnf",
    "dnf5": "dnf",
    "microdnf": "dnf",
    "tdnf": "dnf",
    "mamba": "conda",
    "micromamba": "conda",
}
# Tools whose long options have one hyphen.
SINGLE_DASH = frozenset({"find", "terraform", "java", "openssl"})


class Options(NamedTuple):
    spellings: Mapping[str, frozenset[str]]  # by each spelling, all of that option
    implied: Mapping[str, str]
    with_value: frozenset[str]
    attached: frozenset[str]
    stop_at_operand: bool


@lru_cache(maxsize=256)
def options_of(key: str) -> Options:
    """Return the options of a program, a tool, or a subcommand such as `git push`."""
    spellings: dict[str, frozenset[str]] = {}
    implied: dict[str, str] = {}
    marked: dict[str, set[str]] = {"=": set(), "?": set()}
    words = _words_of(key).split()
    for word in words:
        written, _, letters = word.rstrip("=?").partition(":")
        names = frozenset(written.split(","))
        spellings.update(dict.fromkeys(names, names))
        implied.update(dict.fromkeys(names, letters) if letters else {})
        marked.get(word[-1], set()).update(names)
    with_value, attached = map(frozenset, marked.values())
    return Options(spellings, implied, with_value, attached, words[:1] == ["."])


@lru_cache(maxsize=64)
def aliases_of(tool: str) -> Mapping[str, str]:
    """Return the subcommand that each alias is."""
    found: dict[str, str] = {}
    for line in _ALIASES.get(tool, "").split():
        command, _, others = line.partition(":")
        found.update(dict.fromkeys(others.split(","), command))
    return found


def commands_of(tool: str) -> list[str]:
    return _COMMANDS.get(tool, "").split()


def is_program(name: str) -> bool:
    """Return whether the options of this program are known, and it has no subcommands."""
    return name in _PROGRAMS


def has_options(key: str) -> bool:
    """Return whether this subcommand has options of its own."""
    return key in _SUBCOMMANDS


def has_subcommands(name: str) -> bool:
    return tool_name(name) in _TOOLS


@lru_cache(maxsize=1024)
def tool_name(name: str) -> str:
    """Return the tool that this is: `pip3.11` is pip."""
    known = _SAME_AS.get(name, name)
    if known in _TOOLS:
        return known
    plain = name.rstrip("0123456789.").rstrip("-")
    return _SAME_AS.get(plain, plain)


def _words_of(key: str) -> str:
    return _SUBCOMMANDS.get(key) or _TOOLS.get(key) or _PROGRAMS.get(key, "")
