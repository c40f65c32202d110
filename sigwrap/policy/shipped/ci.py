"""Generated from policies/ci.yaml by policy/tools/shipped.py. Do not edit."""

# fmt: off
DIGEST = '1a6605d1419ffdc7d572764c3694bf7e13c45cb4aae7651995b8cc4a53a5952d'
SECTIONS = (2, 1,
 {'version': (2, 10, 1),
  'name': (3, 7, 'ci'),
  'description': (4, 14,
                  'For a CI job without a user. Actions that need approval are denied. Package '
                  'installs are allowed,\n'
                  'and commands that agent-default denies stay denied. All signals inside the '
                  'session are allowed. A\n'
                  'job has limits. To deploy from CI, extend this policy: allow that command with '
                  '`overrides`.\n'),
  'extends': (8, 10, 'agent-default'),
  'approvals': (9, 12, 'deny'),
  'env_policy': (83, 13, {'remove': (83, 22, ())}),
  'limits': (85, 9,
             {'max_depth': (85, 21, 64),
              'max_processes': (85, 40, 4096),
              'wall_time': (85, 57, 21600)})})
COMMAND_RULES = ((27, 5, 'ci-pkg-install', '',
  ('apt', 'apt-get', 'aptitude', 'yum', 'dnf', 'dnf5', 'microdnf', 'tdnf', 'zypper', 'apk', 'brew',
   'snap', 'flatpak', 'emerge', 'xbps-install', 'guix', 'port', 'npm', 'pnpm', 'yarn', 'yarnpkg',
   'bun', 'deno', 'pip', 'pip[0-9]*', 'pip-[0-9]*', 'pipx', 'uv', 'poetry', 'pdm', 'rye', 'pixi',
   'pipenv', 'conda', 'mamba', 'micromamba', 'gem', 'bundle', 'bundler', 'cargo', 'rustup', 'go',
   'composer', 'dotnet', 'nuget', 'cpan', 'luarocks', 'opam', 'cabal', 'stack', 'asdf', 'mise',
   'volta', 'fnm', 'rbenv', 'pyenv', 'conan', 'vcpkg', 'npm-cli.js', 'yarn.js', 'pnpm.cjs',
   'pnpm.js'),
  None, (), (),
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
  (), (), None, None, (), (), None, None, None, None, 'allow', '', None, '',
  ('pkg-install', 'pkg-install-own-words', 'pkg-install-cpan')),
 (47, 5, 'ci-pkg-install-otherwise', '',
  ('pacman', 'dpkg', 'rpm', 'nix-env', 'npx', 'pnpx', 'bunx', 'uvx', 'npx-cli.js', 'easy_install',
   'cpanm'),
  None, (), (), (), (), (), None, None, (), (), None, None, None, None, 'allow', '', None, '',
  ('pkg-run', 'pkg-install-by-option', 'pkg-install-npx', 'pkg-install-without-a-word',
   'pkg-install-cpan')),
 (54, 5, 'ci-pkg-install-by-subcommand', '',
  ('corepack', 'corepack.js', 'npm-cli.js', 'yarn.js', 'pnpm.cjs', 'pnpm.js', 'yarn', 'yarnpkg',
   'bundle', 'bundler', 'npm', 'uv', 'pipx', 'pip', 'pip[0-9]*', 'conda', 'mamba'),
  None, (), (),
  ('', 'exec', 'run', 'tool run', 'download', 'wheel', 'create', 'env create', 'env update',
   'prepare', 'enable', 'use'),
  (), (), None, None, (), (), None, None, None, None, 'allow', '', None, '',
  ('pkg-install', 'pkg-install-own-words', 'pkg-install-yarn', 'pkg-run-by-exec', 'pkg-run-by-pipx',
   'pkg-run-by-subcommand', 'pkg-run-by-uv', 'pkg-run-with')),
 (63, 5, 'ci-pkg-install-python-m', '', ('python', 'python3', 'python3.*'), None, (), (), (), (),
  (), None, None, (), (), None, None, None, None, 'allow', '', None, '',
  ('pkg-install-python-m',)))
SIGNAL_RULES = ((69, 5, 'ci-own-noise', '', (17, 23, 28), ('session',), None, 'allow', '', 0, None, False, ''),
 (76, 5, 'ci-session', '',
  (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
   27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
   51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64),
  ('session',), None, 'allow', '', 0, None, True, '',
  ('agent', 'agent-debugger', 'agent-unhandled')))
FILE_RULES = ((13, 5, 'files-are-free', '', ('/**',), ('read', 'write', 'create', 'delete', 'execute'), 'allow',
  False, ('secrets', 'elsewhere')),)
NETWORK_RULES = ((20, 5, 'engines-of-the-job', 'Many jobs build an image.',
  ('unix:docker', 'unix:podman', 'unix:containerd'), (), '', 'connect', 'allow', '',
  ('engines',)),)
