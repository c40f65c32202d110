"""policies/ci.yaml, checked by policy/tools/shipped.py: change nothing here."""

# fmt: off
DIGEST = 'debf0fd3075b45785ed9348dc91081f20886450c4fa9ee5afb4a4d330ae749b2'
UNENFORCED = ()
SECTIONS = (2, 1,
 {'version': (2, 10, 1),
  'name': (3, 7, 'ci'),
  'description': (4, 14,
                  'For a job that nobody watches: nothing is ever asked, and what would be is '
                  'denied. Packages may be\n'
                  'installed, commands that agent-default denies stay denied, all signals inside '
                  'the session are free,\n'
                  'and a job has limits. Whoever deploys from CI extends this file and allows just '
                  'that command.\n'),
  'extends': (8, 10, 'agent-default'),
  'approvals': (9, 12, 'deny'),
  'env_policy': (92, 13, {'remove': (92, 22, ())}),
  'limits': (94, 9,
             {'max_depth': (94, 21, 64),
              'max_processes': (94, 40, 4096),
              'wall_time': (94, 57, 21600)})})
COMMAND_RULES = ((25, 5, 'ci-pkg-install', '',
  ('apt', 'apt-get', 'aptitude', 'yum', 'dnf', 'dnf5', 'microdnf', 'tdnf', 'zypper', 'apk', 'brew',
   'snap', 'flatpak', 'emerge', 'xbps-install', 'guix', 'port', 'npm', 'pnpm', 'yarn', 'yarnpkg',
   'bun', 'deno', 'pip', 'pip[0-9]*', 'pip-[0-9]*', 'pipx', 'uv', 'poetry', 'pdm', 'rye', 'pixi',
   'pipenv', 'conda', 'mamba', 'micromamba', 'gem', 'bundle', 'bundler', 'cargo', 'rustup', 'go',
   'composer', 'dotnet', 'nuget', 'cpan', 'luarocks', 'opam', 'cabal', 'stack', 'asdf', 'mise',
   'volta', 'fnm', 'rbenv', 'pyenv', 'conan', 'vcpkg', 'npm-cli.js', 'yarn.js', 'pnpm.cjs',
   'pnpm.js'),
  (),
  ('install', 'i', 'in', 'ins', 'inst', 'insta', 'instal', 'isnt', 'isnta', 'isntal', 'isntall',
   'it', 'install-test', 'add', 'ci', 'cit', 'clean-install', 'install-clean', 'install-ci-test',
   'upgrade', 'update', 'up', 'dup', 'full-upgrade', 'dist-upgrade', 'safe-upgrade', 'reinstall',
   'inject', 'get', 'sync', 'satisfy', 'build-dep', 'localinstall', 'groupinstall', 'group install',
   'module install', 'swap', 'distro-sync', 'downgrade', 'self-update', 'self update', 'self add',
   'global add', 'global require', 'global install', 'global update', 'plugin import',
   'set version', 'upgrade-all', 'reinstall-all', 'install-all', 'runpip', 'pip install',
   'pip sync', 'tool install', 'tool upgrade', 'tool update', 'tool restore', 'python install',
   'binstall', 'toolchain install', 'toolchain add', 'component add', 'target add', 'require',
   'create-project', 'restore', 'add package', 'package add', 'workload install', 'audit fix',
   'plugin install', 'repo add'),
  (), (), None, None, (), (), None, None, None, None, 'allow', '', None, ''),
 (44, 5, 'ci-pkg-install-otherwise', '',
  ('pacman', 'dpkg', 'rpm', 'nix-env', 'npx', 'pnpx', 'bunx', 'uvx', 'npx-cli.js', 'easy_install',
   'cpanm'),
  (), (), (), (), None, None, (), (), None, None, None, None, 'allow', '', None, ''),
 (48, 5, 'ci-pkg-install-by-subcommand', '',
  ('corepack', 'corepack.js', 'npm-cli.js', 'yarn.js', 'pnpm.cjs', 'pnpm.js', 'yarn', 'yarnpkg',
   'bundle', 'bundler', 'npm', 'uv', 'pipx', 'pip', 'pip[0-9]*', 'conda', 'mamba'),
  (),
  ('', 'exec', 'run', 'tool run', 'download', 'wheel', 'create', 'env create', 'env update',
   'prepare', 'enable', 'use'),
  (), (), None, None, (), (), None, None, None, None, 'allow', '', None, ''),
 (54, 5, 'ci-publish-by-setup', '', ('python', 'python3', 'python3.*'),
  ((None, 'regex', 'args_patterns', '(^|[ /])setup\\.py( .*)? (upload|register)( |$)', 56, 21),),
  (), (), (), None, None, (), (), None, None, None, None, 'deny', 'publishing is left to people',
  None, ''),
 (60, 5, 'ci-pkg-install-python-m', '', ('python', 'python3', 'python3.*'), (), (), (), (), None,
  None, (), (), None, None, None, None, 'allow', '', None, ''),
 (65, 5, 'ci-too-long-to-judge', '',
  ('rm', 'chmod', 'chown', 'chgrp', 'shred', 'find', 'dd', 'tee', 'cp', 'mv', 'gh', 'gcloud',
   'terraform', 'tofu', 'terragrunt'),
  (), (), (), (), None, None, (), (), True, None, None, None, 'deny',
  'too many arguments to be judged whole', None, ''),
 (71, 5, 'ci-too-long-to-judge-push', '', ('git',), (), ('push',), (), (), None, None, (), (), True,
  None, None, None, 'deny', 'too many arguments to be judged whole', None, ''))
SIGNAL_RULES = ((79, 5, 'ci-own-noise', '', (17, 23, 28), ('session',), None, 'allow', '', 0, None, False, ''),
 (86, 5, 'ci-session', '',
  (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
   27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
   51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64),
  ('session',), None, 'allow', '', 0, None, True, ''))
FILE_RULES = ((13, 5, 'files-are-free', '', ('/**',), ('read', 'write', 'create', 'delete', 'execute'), 'allow',
  False),)
NETWORK_RULES = ((19, 5, 'engines-of-the-job', 'Many jobs are there to build an image.',
  ('unix:docker', 'unix:podman', 'unix:containerd'), (), '', 'connect', 'allow', ''),)
