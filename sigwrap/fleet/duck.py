"""A lake read by DuckDB: compacted days from Parquet, the others as they landed."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from glob import escape, glob
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from sigwrap.errors import StoreError, UsageError
from sigwrap.fleet.lake import (
    DUCKDB,
    LAKE,
    ROWS,
    duckdb_compaction,
    duckdb_landed,
    duckdb_parquet,
    quoted,
    views,
)
from sigwrap.fleet.rows import TABLES
from sigwrap.text import printable, shortened

if TYPE_CHECKING:
    import duckdb

_LONGEST_MESSAGE = 300
_DATE = r"/date=(\d{4}-\d{2}-\d{2})/"
_INSTALL = "pip install 'sigwrap[fleet]'"


def place_of(url: str) -> str:
    """Return the place as engines name it: a path, or s3://BUCKET/PREFIX."""
    parts = urlsplit(url)
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return unquote(parts.path).rstrip("/") or "/"
    if parts.scheme == "s3" and parts.netloc:
        return url.rstrip("/")
    raise UsageError(
        f"{printable(url)} is not a lake's URL", "such as file:///srv/lake or s3://BUCKET/PREFIX"
    )


class EmptyLake(StoreError):
    """No session was shipped to the lake."""


class Lake:
    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        self.place = place_of(url)
        try:
            import duckdb
        except ImportError as error:
            raise UsageError("reading a lake needs DuckDB", _INSTALL) from error
        self._error = duckdb.Error
        self._module = duckdb
        self.connection = duckdb.connect(
            config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        )
        self.execute("SET enable_progress_bar = false")
        spilled = f"{tempfile.gettempdir()}/sigwrap-duckdb-{os.getpid()}"
        self.execute(f"SET temp_directory = {quoted(spilled)}")
        if self.place.startswith("s3:"):
            self._use_bucket(environment)

    def _use_bucket(self, environment: Mapping[str, str]) -> None:
        try:
            import duckdb_extension_httpfs
        except ImportError as error:
            raise UsageError("reading a bucket needs DuckDB's httpfs", _INSTALL) from error
        folder = escape(os.path.dirname(duckdb_extension_httpfs.__file__ or ""))
        for path in glob(f"{folder}/extensions/*/httpfs.duckdb_extension"):
            self.execute(f"LOAD {quoted(path)}")

        def setting(*names: str) -> str:
            return next((value for name in names if (value := environment.get(name))), "")

        fields = {
            "KEY_ID": setting("AWS_ACCESS_KEY_ID"),
            "SECRET": setting("AWS_SECRET_ACCESS_KEY"),
            "SESSION_TOKEN": setting("AWS_SESSION_TOKEN"),
            "REGION": setting("AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1",
        }
        if not fields["KEY_ID"] or not fields["SECRET"]:
            raise UsageError(
                "no credential for the bucket", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        said = [f"{name} {quoted(value)}" for name, value in fields.items() if value]
        if endpoint := setting("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
            parts = urlsplit(endpoint)
            said += [f"ENDPOINT {quoted(parts.netloc)}", "URL_STYLE 'path'"]
            said += [f"USE_SSL {str(parts.scheme != 'http').lower()}"]
        self.execute(f"CREATE SECRET (TYPE s3, {', '.join(said)})")

    def execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Run SQL of sigwrap's own; StoreError if the files can't be read."""
        try:
            return self.connection.execute(sql)
        except self._error as error:
            raise StoreError(f"can't read {self.place}: {_said(error)}") from error

    def dates(self, files: str) -> set[str]:
        """Return the dates that have such files, a glob below the lake."""
        found = self.execute(
            f"SELECT DISTINCT regexp_extract(file, '{_DATE}', 1) "
            f"FROM glob({quoted(f'{self.place}/{files}')})"
        )
        return {date for (date,) in found.fetchall() if date}

    @property
    def landed_dates(self) -> set[str]:
        return self.dates(f"{ROWS}/date=*/*/*.ndjson.gz")

    @property
    def compacted_dates(self) -> set[str]:
        """Return the dates of which all tables are compacted; `events` is the last one."""
        return self.dates(f"{LAKE}/events/date=*/rows.parquet")

    def make_views(self, *, read_once: bool = False) -> None:
        """Make the views. With `read_once`, for many questions, landed files are read now, but not
        their payloads.
        """
        compacted = sorted(self.compacted_dates)
        landed = sorted(self.landed_dates.difference(compacted))
        if not landed and not compacted:
            raise EmptyLake(
                f"there are no sessions in {self.place}",
                f"to ship some: sigwrap ship --all --to {self.place}",
            )
        globs = [quoted(f"{self.place}/{ROWS}/date={date}/*/*.ndjson.gz") for date in landed]
        for table in TABLES:
            sources = [duckdb_landed(table, f"[{', '.join(globs)}]")] if globs else []
            if globs and read_once and table != "processes":
                self.execute(f"CREATE TEMP TABLE landed_{table} AS {_slim(table, sources[0])}")
                sources = [f"SELECT * FROM landed_{table}"]
            sources += [duckdb_parquet(table, self.place, compacted)] if compacted else []
            self.execute(f"CREATE VIEW rows_{table} AS {' UNION ALL '.join(sources)}")
        for each in views(DUCKDB):
            self.execute(each)
        if read_once:  # each question would find the newest row of each session
            self.execute("CREATE TEMP TABLE sessions AS SELECT * FROM sessions")

    def asked(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows of SQL of sigwrap's own, which sees what was read once."""
        return [*self._fetched(self.execute(sql))]

    def compact(self, dates: list[str]) -> list[str]:
        """Write each date's rows into one Parquet file a table; return the dates.

        Without dates: all before today that have a session which no such file has.
        """
        if missing := sorted(set(dates) - self.landed_dates):
            raise UsageError(f"no rows of {', '.join(missing)} in {self.place}")
        wanted = dates or self._not_compacted()
        for date in wanted:
            for table in reversed(TABLES):
                if not self.place.startswith("s3:"):
                    os.makedirs(f"{self.place}/{LAKE}/{table}/date={date}", exist_ok=True)
                self.execute(duckdb_compaction(table, self.place, date))
        return wanted

    def _not_compacted(self) -> list[str]:
        files = quoted(f"{self.place}/{ROWS}/date=*/*/*.ndjson.gz")
        landed = (
            f"SELECT DISTINCT regexp_extract(file, '{_DATE}([^/]*)', ['date', 'session']) "
            f"FROM glob({files})"
        )
        compacted = set[tuple[Any, ...]]()
        if dates := self.compacted_dates:
            known = duckdb_parquet("sessions", self.place, dates)
            compacted.update(self.rows(f"SELECT date, session FROM ({known})"))
        today = time.strftime("%Y-%m-%d", time.gmtime())
        found = ((each["date"], each["session"]) for (each,) in self.rows(landed))
        return sorted({each[0] for each in found if each not in compacted and each[0] < today})

    def select(self, sql: str) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        """Run the user's SQL, a single SELECT."""
        try:
            statements = self._module.extract_statements(sql)
            if len(statements) != 1:
                raise UsageError("the SQL has more than one statement", "run them one by one")
            if statements[0].type != self._module.StatementType.SELECT:
                raise UsageError("the SQL is not a SELECT", "only reading is allowed")
            cursor = self.connection.execute(statements[0])
        except self._error as error:
            raise UsageError(f"SQL error: {_said(error)}") from error
        names = tuple(str(each[0]) for each in cursor.description or ())
        return names, self._fetched(cursor)

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Return the rows of SQL of sigwrap's own, which can be read beside others."""
        try:
            cursor = self.connection.cursor().execute(sql)
        except self._error as error:
            raise StoreError(f"can't read {self.place}: {_said(error)}") from error
        return self._fetched(cursor)

    def _fetched(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
        try:
            while rows := cursor.fetchmany(1_000):
                yield from rows
        except self._error as error:
            raise StoreError(f"can't read {self.place}: {_said(error)}") from error


def _slim(table: str, select: str) -> str:
    """Return a SELECT without the texts that only a check of the chain needs."""
    left_out = {each.name for each in TABLES[table]} & {"payload", "argv", "labels", "missing"}
    empty = ", ".join(f"CAST(NULL AS VARCHAR) AS {name}" for name in sorted(left_out))
    return f"SELECT * REPLACE ({empty}) FROM ({select})"


def _said(error: Exception) -> str:
    return shortened(printable(str(error).partition("\n")[0]), _LONGEST_MESSAGE)
