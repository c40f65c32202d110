"""The first argument that is no option.

`git -C /srv push` pushes: for commands whose options can take the next argument as their value,
those options are listed here, or the value would pass for the subcommand and a rule on `push`
would be blind (and one that allows `status` fooled by a folder of that name).
"""

from __future__ import annotations

from collections.abc import Sequence

_NO_OPTIONS: frozenset[str] = frozenset()


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPTIONS_WITH_VALUE: dict[str, frozenset[str]] = {
    "git": _options(
        "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source "
        "--list-cmds --shallow-file"
    ),
    "npm": _options("-C --prefix -w --workspace --userconfig --cache --loglevel --registry"),
    "pnpm": _options("-C --dir -F --filter --loglevel"),
    "yarn": _options("--cwd"),
    "bun": _options("--cwd -c --config"),
    "pip": _options(
        "--python --log --proxy --retries --timeout --trusted-host --cert --client-cert "
        "--cache-dir --keyring-provider --exists-action --use-feature"
    ),
    "uv": _options("--directory --project --config-file --cache-dir --color --python -p"),
    "poetry": _options("-C --directory -P --project"),
    "cargo": _options("-C --color --config -Z --explain --manifest-path"),
    "go": _options("-C"),
    "docker": _options(
        "-H --host -c --context --config -l --log-level --tlscacert --tlscert --tlskey"
    ),
    "podman": _options(
        "-c --connection --url --identity --log-level --root --runroot --storage-driver"
    ),
    "kubectl": _options(
        "-n --namespace --context --cluster --user --kubeconfig -s --server --token --as"
    ),
    "helm": _options("-n --namespace --kube-context --kubeconfig"),
    "gh": _options("-R --repo --hostname"),
    "gcloud": _options(
        "--project --account --configuration --format --verbosity --region --zone "
        "--impersonate-service-account --billing-project --flags-file --filter"
    ),
    "aws": _options("--profile --region --output --endpoint-url --query --ca-bundle"),
    "terraform": _NO_OPTIONS,
    "brew": _NO_OPTIONS,
    "apt": _options("-o --option -c --config-file -t --target-release"),
    "apt-get": _options("-o --option -c --config-file -t --target-release"),
    "yum": _options("-c --config -x --exclude --enablerepo --disablerepo --setopt"),
    "dnf": _options("-c --config -x --exclude --enablerepo --disablerepo --setopt"),
    "systemctl": _options("-H --host -M --machine -t --type -p --property"),
}
_SAME_AS = {"pip3": "pip", "nerdctl": "docker", "tofu": "terraform", "terragrunt": "terraform"}


def has_subcommands(name: str) -> bool:
    return _SAME_AS.get(name, name) in _OPTIONS_WITH_VALUE


def name_for_subcommands(basename: str, called: str) -> str:
    """The file's own name, where that is a command with subcommands; else what it is called as."""
    return basename if has_subcommands(basename) else called


def subcommand(name: str, argv: Sequence[str]) -> str:
    """The empty string where there is none."""
    with_value = _OPTIONS_WITH_VALUE.get(_SAME_AS.get(name, name), _NO_OPTIONS)
    skip_value = False
    for position in range(1, len(argv)):
        argument = argv[position]
        if skip_value:
            skip_value = False
        elif argument in with_value:
            skip_value = True
        elif not argument.startswith("-"):
            return argument
    return ""
