from tests.report.conftest import made, scenario

__all__ = ["made", "scenario"]
