"""Tools that have subcommands: which of their options take the next argument, and which names of a
subcommand mean the same.

`git -C /srv push` pushes: without the table, the value would pass for the subcommand. Options that
a tool doesn't have in the table may take a value or not, so both are tried (`subcommand`).
"""

from __future__ import annotations

from collections.abc import Mapping

from sigwrap.bare.functools import lru_cache
from sigwrap.tuples import NamedTuple


class Tool(NamedTuple):
    with_value: frozenset[str]
    flags: frozenset[str]
    aliases: Mapping[str, str]
    commands: tuple[str, ...]  # where the start of one, or of an alias, is enough, if only one fits
    toolchain: bool  # a first argument `+nightly` is none
    camel_case: bool  # `distTag` is `dist-tag`


def tool_named(name: str) -> Tool | None:
    known = _TOOLS.get(name)
    return None if known is None else _made(known)


def is_known(name: str) -> bool:
    return name in _TOOLS


class _Words(NamedTuple):
    """A row of the table. Only of the tools that are used, sets are made."""

    with_value: str
    flags: str
    aliases: str
    commands: str
    toolchain: bool
    camel_case: bool


@lru_cache(maxsize=None)
def _made(words: _Words) -> Tool:
    aliases: dict[str, str] = {}
    for line in words.aliases.split():
        command, _, others = line.partition(":")
        aliases.update(dict.fromkeys(others.split(","), command))
    return Tool(
        frozenset(words.with_value.split()),
        frozenset(words.flags.split()),
        aliases,
        tuple(words.commands.split()),
        words.toolchain,
        words.camel_case,
    )


def _tool(
    with_value: str = "",
    flags: str = "",
    aliases: str = "",
    commands: str = "",
    *,
    toolchain: bool = False,
    camel_case: bool = False,
) -> _Words:
    """`aliases`: `install:i,in add:a`."""
    return _Words(with_value, flags, aliases, commands, toolchain, camel_case)


_HELP = "-h --help --version -V -v -q --quiet --verbose "
_APT = _tool(
    "-o --option -c --config-file -t --target-release --default-release -a --host-architecture",
    _HELP + "-y --yes --assume-yes -f --fix-broken -d --download-only -s --simulate -u "
    "--no-install-recommends --allow-downgrades --allow-unauthenticated --force-yes -qq",
)
_DNF = _tool(
    "-c --config -x --exclude --excludepkgs --enablerepo --disablerepo --repo --repoid --setopt "
    "--installroot --releasever -d --debuglevel -e --errorlevel -R --randomwait --comment "
    "--forcearch --disableplugin --enableplugin",
    _HELP + "-y --assumeyes --assumeno -C --cacheonly -b --best --nobest --refresh --allowerasing "
    "--nogpgcheck --skip-broken",
    "install:in,localinstall,groupinstall upgrade:up,update,localupdate,upgrade-minimal "
    "remove:erase,rm reinstall:rei downgrade:dg group:groups,grp distro-sync:dsync,dist-upgrade",
)
_NPM = _tool(
    "-C --prefix -w --workspace --userconfig --globalconfig --cache --loglevel --registry --tag "
    "--otp --access --scope --script-shell --node-options --omit --include --package --call -c "
    "--before --depth --location --message -m --proxy --https-proxy --user-agent --init-module",
    _HELP + "-y --yes -g --global -s --silent -d -dd -ddd --json --parseable -f --force --offline "
    "--prefer-offline --no-audit --no-fund --ignore-scripts --no-save -D --save-dev -E "
    "--save-exact "
    "-S --save -O --save-optional -P --save-prod --workspaces -ws --include-workspace-root "
    "--foreground-scripts --if-present --legacy-peer-deps --production --no --no-install -l --long "
    "--dry-run --no-color --no-progress --no-optional --no-package-lock",
    "install:i,in,ins,inst,insta,instal,isnt,isnta,isntal,isntall,add "
    "ci:ic,clean-install,install-clean,isntall-clean install-test:it "
    "install-ci-test:cit,clean-install-test,sit update:u,up,upgrade,udpate exec:x "
    "uninstall:un,unlink,remove,rm,r link:ln init:create,innit run:run-script,rum,urn "
    "test:t,tst dedupe:ddp dist-tag:dist-tags login:adduser,add-user owner:author "
    "view:info,show,v ls:list,la,ll config:c rebuild:rb docs:home bugs:issues search:find,s,se "
    "version:verison explain:why org:ogr help:hlep",
    "access approve-scripts audit bugs cache ci completion config dedupe deny-scripts deprecate "
    "diff dist-tag docs doctor edit exec explain explore find-dupes fund get help help-search hook "
    "init install install-ci-test install-scripts install-test link login logout ls org outdated "
    "owner pack ping pkg prefix profile prune publish query rebuild repo restart root run sbom "
    "search set shrinkwrap stage star stars start stop team test token trust undeprecate uninstall "
    "unpublish unstar update version view whoami",
    camel_case=True,
)
_GO_STYLE = _HELP + "-D --debug "
_DOCKER = _tool(
    "-H --host -c --context --config -l --log-level --tlscacert --tlscert --tlskey -f --file "
    "-p --project-name --profile --env-file --project-directory --ansi --progress --builder",
    _GO_STYLE + "--tls --tlsverify",
)

ANY_TOOL = _made(_tool(flags=_HELP + "--debug --json -y --yes"))
_TOOLS: dict[str, _Words] = {
    "git": _tool(
        "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source "
        "--list-cmds --shallow-file",
        "-v --version -h --help -p --paginate -P --no-pager --no-replace-objects --no-lazy-fetch "
        "--no-optional-locks --no-advice --bare --literal-pathspecs --glob-pathspecs "
        "--noglob-pathspecs --icase-pathspecs --exec-path --html-path --man-path --info-path",
    ),
    "gh": _tool(
        "-R --repo --hostname -X --method -f --raw-field -F --field -H --header -q --jq --template "
        "-b --body --body-file -t --title -B --base --input -p --preview --cache -A --author-email "
        "--subject --match-head-commit",
        "-h --help --version",
        "extension:ext,extensions codespace:cs",
    ),
    "glab": _tool("-R --repo -g --group -X --method", "-h --help", "mr:merge-request"),
    "npm": _NPM,
    "pnpm": _tool(
        "-C --dir -F --filter --filter-prod --loglevel --reporter --workspace-concurrency "
        "--changed-files-ignore-pattern --test-pattern --store-dir --registry --package "
        "--shell-emulator",
        _HELP + "-r --recursive -w --workspace-root -s --silent --color --no-color --offline "
        "--stream --aggregate-output --parallel -D -P -O -E -g --global --yes --if-present",
        "install:i,add update:up,upgrade remove:rm,uninstall,un link:ln run:run-script",
    ),
    "yarn": _tool(
        "--cwd --cache-folder --modules-folder --registry --mutex --network-timeout "
        "--network-concurrency --use-yarnrc --preferred-cache-folder --global-folder --emoji "
        "--proxy --https-proxy --script-shell",
        _HELP + "-s --silent --json --offline --no-progress --frozen-lockfile --immutable "
        "--ignore-scripts --ignore-engines --non-interactive --no-lockfile --production",
    ),
    "bun": _tool(
        "--cwd -c --config -r --preload --env-file --port -p --print -e --eval --define -d "
        "--loader "
        "--conditions --main-fields --shell --install --filter -F",
        "-h --help -v --version --revision --hot --watch --smol --silent -b --bun --inspect "
        "--if-present",
        "install:i add:a remove:rm create:c",
    ),
    "deno": _tool(flags=_HELP + "--unstable -A -r --reload", aliases="install:i,add"),
    "pip": _tool(
        "--python --log --proxy --retries --timeout --trusted-host --cert --client-cert "
        "--cache-dir --keyring-provider --exists-action --use-feature --use-deprecated "
        "--index-url -i --extra-index-url",
        _HELP + "-qq -qqq -vv -vvv --isolated --require-virtualenv --no-input --no-cache-dir "
        "--disable-pip-version-check --no-color --debug --no-python-version-warning",
    ),
    "pipx": _tool("--backend", _HELP + "--global"),
    "uv": _tool(
        "--directory --project --config-file --cache-dir --color --python -p --allow-insecure-host "
        "--python-preference --python-fetch --with --with-editable --with-requirements --from "
        "--extra --group --only-group --no-group --env-file --index --default-index --index-url -i "
        "--extra-index-url --package --index-strategy --resolution --prerelease --exclude-newer",
        _HELP
        + "-n --no-cache --native-tls --offline --no-progress --no-config --no-python-downloads "
        "--preview --managed-python --no-managed-python --isolated --active --no-sync --locked "
        "--frozen --all-extras --no-dev --all-packages --exact --no-project --no-env-file -m "
        "--module -s --script --all-groups --dev --only-dev",
    ),
    "poetry": _tool(
        "-C --directory -P --project", _HELP + "-n --no-interaction --no-ansi --no-plugins"
    ),
    "pdm": _tool("-c --config -p --project", _HELP + "-n -I -L"),
    "cargo": _tool(
        "-C --color --config -Z --explain --manifest-path --target-dir",
        _HELP + "-vv --list --locked --offline --frozen",
        "build:b check:c doc:d run:r test:t remove:rm",
        toolchain=True,
    ),
    "rustup": _tool("--profile", _HELP, "update:upgrade,up toolchain:toolchains", toolchain=True),
    "go": _tool("-C"),
    "gem": _tool(
        "--config-file",
        _HELP + "--norc",
        commands="build cert check cleanup contents dependency environment exec fetch "
        "generate_index "
        "help info install list lock mirror open outdated owner pristine push query rdoc rebuild "
        "search server signin signout sources specification stale uninstall unpack update which "
        "yank",
    ),
    "bundle": _tool("-r --retry -j --jobs --gemfile", _HELP + "--no-color", "install:i"),
    "composer": _tool(
        "-d --working-dir",
        _HELP + "-n --no-interaction --no-plugins --no-scripts --no-cache --profile --ansi "
        "--no-ansi -vv -vvv",
        "install:i require:r update:u,upgrade global:g",
    ),
    "dotnet": _tool(flags="-h --help --info --version -d --diagnostics"),
    "conda": _tool(
        "-n --name -p --prefix",
        _HELP + "-y --yes --no-plugins",
        commands="activate clean compare config create deactivate doctor env export index info "
        "init "
        "install list notices package remove rename repoquery run search uninstall update upgrade",
    ),
    "brew": _tool(
        "--appdir", _HELP + "-d --debug", "install:instal upgrade:up uninstall:rm,remove"
    ),
    "apt": _APT,
    "apt-get": _APT,
    "aptitude": _APT,
    "dnf": _DNF,
    "zypper": _tool(
        "-R --root -D --reposd-dir -C --cache-dir -c --config -p --plus-repo --releasever",
        _HELP + "-n --non-interactive --no-gpg-checks --gpg-auto-import-keys -x -s -t --no-refresh",
        "install:in update:up dist-upgrade:dup remove:rm patch:p install-new-recommends:inr",
    ),
    "apk": _tool(
        "-p --root -X --repository --arch --cache-dir --cache-max-age --keys-dir --wait "
        "--repositories-file --progress-fd",
        _HELP + "-f --force -i --interactive -U --update-cache --no-cache --allow-untrusted "
        "--no-progress --purge --no-network --print-arch",
    ),
    "snap": _tool(flags=_HELP),
    "flatpak": _tool(flags=_HELP + "--user --system --ostree-verbose -y", aliases="update:upgrade"),
    "docker": _DOCKER,
    "podman": _tool(
        "-c --connection --url --identity --log-level --root --runroot --storage-driver "
        "--storage-opt --tmpdir --cgroup-manager --conmon --events-backend --module "
        "--network-cmd-path "
        "--namespace --hooks-dir --runtime --ssh --volumepath --transient-store",
        _HELP + "-r --remote --syslog --noout",
    ),
    "kubectl": _tool(
        "-n --namespace --context --cluster --user --kubeconfig -s --server --token --as "
        "--as-group "
        "--as-uid --cache-dir --certificate-authority --client-certificate --client-key "
        "--request-timeout --tls-server-name --username --password --log-flush-frequency -v --v "
        "--vmodule --profile --profile-output -f --filename -o --output -l --selector",
        "-h --help --insecure-skip-tls-verify --match-server-version --warnings-as-errors "
        "--disable-compression",
    ),
    "helm": _tool(
        "-n --namespace --kube-context --kubeconfig --kube-apiserver --kube-as-group "
        "--kube-as-user "
        "--kube-ca-file --kube-token --kube-tls-server-name --registry-config --repository-cache "
        "--repository-config --burst-limit --qps",
        "-h --help --debug --kube-insecure-skip-tls-verify",
        "uninstall:un,delete,del",
    ),
    "gcloud": _tool(
        "--project --account --configuration --format --verbosity --region --zone "
        "--impersonate-service-account --billing-project --flags-file --filter --access-token-file",
        "-h --help -q --quiet --log-http --no-user-output-enabled --user-output-enabled -v "
        "--version",
    ),
    "aws": _tool(
        "--profile --region --output --endpoint-url --query --ca-bundle --cli-read-timeout "
        "--cli-connect-timeout --color --cli-binary-format",
        "--debug --no-verify-ssl --no-paginate --version --no-sign-request --no-cli-pager",
    ),
    "terraform": _tool(flags="-help --help -h -version --version -v"),
    "systemctl": _tool(
        "-H --host -M --machine -t --type -p --property -P --state -s --signal --job-mode -o "
        "--output -n --lines --root --what --kill-whom --kill-value --legend --image --timestamp",
        _HELP
        + "--user --system --no-pager -l --full -a --all --no-block --now --runtime -f --force "
        "--no-legend --no-ask-password --failed -r --recursive",
    ),
}
SAME_AS = {
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
