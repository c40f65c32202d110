"""Options and arguments that several commands have."""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sigwrap.errors import SessionError, UsageError
from sigwrap.log.folder import DEFAULT_STORE, default_store

if TYPE_CHECKING:
    from sigwrap.fleet.duck import Lake


def _named(option: str | None) -> str | None:
    if option == "":
        raise UsageError("--store '': the directory can't be empty")
    return option


def _utc(context: typer.Context, value: bool) -> bool:
    return value or bool(context.find_root().params.get("utc"))


def _no_pager(context: typer.Context, value: bool) -> bool:
    return value or bool(context.find_root().params.get("no_pager"))


StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help=f"Directory for session logs [default: {DEFAULT_STORE}]",
        callback=_named,
    ),
]
SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="[SESSION]",
        help="Session id, its unique start or end, a session name, or a log file "
        "[default: the latest session]",
    ),
]
# sigwrap itself has these two for every command; they are still accepted after a command.
UTC_HELP = "Show times in UTC"
NO_PAGER_HELP = "Print without a pager ($SIGWRAP_PAGER, $PAGER or less)"
UtcOption = Annotated[bool, typer.Option("--utc", help=UTC_HELP, hidden=True, callback=_utc)]
PagerOption = Annotated[
    bool, typer.Option("--no-pager", help=NO_PAGER_HELP, hidden=True, callback=_no_pager)
]


LakeOption = Annotated[
    str | None,
    typer.Option(
        "--lake",
        metavar="URL",
        help="Read the sessions that sigwrap ship sent there: file:///DIR or s3://BUCKET/PREFIX",
    ),
]


class Format(Enum):
    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="Output format")]


def with_json(parser: Any) -> Any:
    """Let a command with `--format json` accept `--json` as well, its old name."""
    known = parser._long_opt
    if "--format" in known and "--json" not in known:
        form = known["--format"].obj
        if "json" in form.type.choices:
            parser.add_option(form, ["--json"], form.name, "store_const", const="json")
    return parser


def opened_lake(url: str, *, raw: bool = False) -> Lake:
    """Return a lake with its views; `raw`: of every row, as often as it is there."""
    from sigwrap.fleet.duck import Lake

    lake = Lake(url, os.environ)
    lake.make_views(raw=raw)
    return lake


def store_folder(option: str | None) -> str:
    return default_store(os.environ) if option is None else option


def existing_store(option: str | None) -> str:
    """Return the store; an error if the user named one that does not exist."""
    store = store_folder(option)
    is_named = option is not None or bool(os.environ.get("SIGWRAP_STORE"))
    if is_named and not os.path.isdir(store):
        what = "is not a directory" if os.path.exists(store) else "does not exist"
        raise SessionError(f"the store {store} {what}", "choose another with --store")
    return store


def watched_store(option: str | None) -> str:
    """Return the store; an error if `--store` names one that does not exist."""
    return store_folder(None) if option is None else existing_store(option)
