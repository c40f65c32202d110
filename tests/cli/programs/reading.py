import sys

import typer

from sigwrap.cli.reading import register
from sigwrap.errors import SigwrapError

app = typer.Typer()
register(app)
try:
    app()
except SigwrapError as error:
    sys.exit(f"sigwrap: {error}")
