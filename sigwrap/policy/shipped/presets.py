"""Generated from policies/presets by policy/tools/presets.py. Do not edit."""

from sigwrap.hints import Any

# fmt: off
PRESETS: dict[str, dict[str, Any]] = \
{'claude': {'program': 'claude',
            'policy': 'agent-default',
            'install': 'npm install -g @anthropic-ai/claude-code',
            'environment': (('CLAUDE_CODE_DISABLE_AGENT_VIEW', '1'), ('DISABLE_AUTOUPDATER', '1')),
            'daemons': ('claude daemon',),
            'stop': 'claude daemon stop --any',
            'tool_calls': ('source * 2>/dev/null || true && shopt -u extglob 2>/dev/null || true '
                           '&& eval {quoted} < /dev/null && pwd -P >| *',
                           'source * 2>/dev/null || true && shopt -u extglob 2>/dev/null || true '
                           '&& eval {quoted} && pwd -P >| *',
                           'shopt -u extglob 2>/dev/null || true && eval {quoted} < /dev/null && '
                           'pwd -P >| *',
                           'eval {quoted} < /dev/null && pwd -P >| *',
                           'source * 2>/dev/null || true && setopt NO_EXTENDED_GLOB '
                           'NO_BARE_GLOB_QUAL 2>/dev/null || true && eval {quoted} < /dev/null && '
                           'pwd -P >| *',
                           'source * 2>/dev/null || true && setopt NO_EXTENDED_GLOB '
                           'NO_BARE_GLOB_QUAL 2>/dev/null || true && eval {quoted} && pwd -P >| *',
                           'setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL 2>/dev/null || true && eval '
                           '{quoted} < /dev/null && pwd -P >| *')},
 'codex': {'program': 'codex',
           'policy': 'agent-default',
           'install': 'npm install -g @openai/codex',
           'before': ('--no-daemon',),
           'daemons': ('codex app-server',),
           'stop': 'codex app-server daemon stop',
           'without_sandbox': ('-c sandbox_mode="danger-full-access"',
                               '-s danger-full-access',
                               '--dangerously-bypass-approvals-and-sandbox',
                               '--yolo'),
           'sandbox_words': ('-s',
                             '--sandbox',
                             'sandbox_mode',
                             '--full-auto',
                             '--yolo',
                             '--dangerously-bypass')},
 'gemini': {'program': 'gemini',
            'policy': 'agent-default',
            'install': 'npm install -g @google/gemini-cli',
            'tool_calls': ('shopt -u promptvars nullglob extglob nocaseglob dotglob; '
                           '_bgpids_file=*\n'
                           '(\n'
                           '  trap \'jobs -p > "$_bgpids_file"\' EXIT\n'
                           '{command}\n'
                           ')\n'
                           '__code=$?\n'
                           'exit $__code',
                           '{\n{command}\n}\n__code=$?; pwd > *; exit $__code')}}
