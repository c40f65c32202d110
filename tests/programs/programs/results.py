"""What became of each test, from the JUnit reports that its suite has written."""

import sys
import xml.etree.ElementTree as ElementTree

became = {}
for path in sys.argv[1:]:
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        kinds = {part.tag for part in case}
        if kinds & {"failure", "error"}:
            became[name] = "failed"
        elif "skipped" in kinds or case.get("result") == "skipped":
            became[name] = "skipped"
        else:
            became.setdefault(name, "passed")
for name, result in sorted(became.items()):
    print(result, name)
print(len(became), "tests")
