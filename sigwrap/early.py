"""Before sigwrap takes signals, it is like any program: an interrupt ends it at once. Imported
first of all, for Python would say where it was; in the binary, before anything can be imported."""

import _signal  # type: ignore[import-not-found]  # signal itself would first make its enums

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # or the caller ignores it
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
