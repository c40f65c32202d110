"""policies/agent-observe.yaml, checked by policy/tools/shipped.py: change nothing here."""

# fmt: off
DIGEST = '061f88413b4a44f067e41c560579357b1c9cdce7d6900fe9bfd4d1c55742cde5'
UNENFORCED = ()
SECTIONS = (2, 1,
 {'version': (2, 10, 1),
  'name': (3, 7, 'agent-observe'),
  'description': (4, 14,
                  'Nothing is refused and everything is recorded: the profile that `sigwrap policy '
                  'generate` makes a\n'
                  'policy from. Signals to sigwrap itself are denied all the same, as under every '
                  'policy.\n'),
  'unenforced': (9, 13, 'warn'),
  'defaults': (10, 11, {'command': (10, 21, 'audit'), 'signal': (10, 36, 'audit')})})
COMMAND_RULES = ((13, 5, 'every-command', '', ('*',), (), (), (), (), None, None, (), (), None, None, None, None,
  'audit', '', None, ''),)
SIGNAL_RULES = ((18, 5, 'every-signal', '',
  (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
   27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
   51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64),
  (), None, 'audit', '', 0, None, True, ''),)
FILE_RULES = ()
NETWORK_RULES = ((23, 5, 'every-host', '', ('*',), (), 'tcp', 'connect', 'audit', ''),)
