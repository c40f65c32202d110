"""policies/agent-observe.yaml, read by policy/tools/shipped.py: change nothing here."""

DIGEST = "32b343ff82e122d4234085978b9d008dc13128ce447c945df8ccb3066af1795a"
NODES = r"""
["{",2,1,[2,1,"version"],[2,10,1,"1"],[3,1,"name"],[3,7,"agent-observe"],[4,1,"description"],[4,14,
"Nothing is refused and everything is recorded: the profile that `sigwrap policy generate` makes a\npolicy from. Signals to sigwrap itself are denied all the same, as under every policy.\n"],
[9,1,"unenforced"],[9,13,"warn"],[10,1,"defaults"],["{",10,11,[10,12,"command"],[10,21,"audit"],[10,
28,"signal"],[10,36,"audit"]],[12,1,"command_rules"],["[",13,3,["{",13,5,[13,5,"name"],[13,11,
"every-command"],[14,5,"commands"],["[",14,15,[14,16,"*"]],[15,5,"decision"],[15,15,"audit"]]],[17,
1,"signal_rules"],["[",18,3,["{",18,5,[18,5,"name"],[18,11,"every-signal"],[19,5,"signals"],["[",19,
14,[19,15,"@all"]],[20,5,"decision"],[20,15,"audit"]]],[22,1,"file_rules"],["[",23,3,["{",23,5,[23,
5,"name"],[23,11,"every-file"],[24,5,"paths"],["[",24,12,[24,13,"/**"]],[25,5,"operations"],["[",25,
17,[25,18,"read"],[25,24,"write"],[25,31,"create"],[25,39,"delete"]],[26,5,"decision"],[26,15,
"audit"]]],[28,1,"network_rules"],["[",29,3,["{",29,5,[29,5,"name"],[29,11,"every-host"],[30,5,
"destinations"],["[",30,19,[30,20,"*"]],[31,5,"decision"],[31,15,"audit"]]]]
"""
