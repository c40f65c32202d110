"""Generated from policies/agent-observe.yaml by policy/tools/shipped.py. Do not edit."""

# fmt: off
DIGEST = '904a7f070d21514d1e4479c1c35d2f76a7566eb8abca5ca2d0d4f72fc47b560b'
SECTIONS = (2, 1,
 {'version': (2, 10, 1),
  'name': (3, 7, 'agent-observe'),
  'description': (4, 14,
                  'Allows and records everything, except signals to sigwrap itself, which every '
                  'policy denies. Run a\n'
                  'command under it, then let `sigwrap policy learn --new` write a policy from the '
                  'session.\n'),
  'defaults': (8, 11, {'command': (8, 21, 'audit'), 'signal': (8, 36, 'audit')})})
COMMAND_RULES = ((11, 5, 'every-command', '', ('*',), None, (), (), (), (), (), None, None, (), (), None, None,
  None, None, 'audit', '', None, ''),)
SIGNAL_RULES = ((16, 5, 'every-signal', '',
  (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
   27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
   51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64),
  (), None, 'audit', '', 0, None, True, ''),)
FILE_RULES = ()
NETWORK_RULES = ((21, 5, 'every-host', '', ('*',), (), 'tcp', 'connect', 'audit', ''),)
