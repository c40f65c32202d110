"""A lake read by DuckDB: compacted days from Parquet, the others as they landed."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from glob import escape, glob
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from sigwrap.errors import StoreError, UsageError
from sigwrap.fleet.lake import (
    DUCKDB,
    FILE,
    LAKE,
    ROWS,
    duckdb_compaction,
    duckdb_copy,
    duckdb_landed,
    duckdb_parquet,
    once,
    quoted,
    views,
)
from sigwrap.fleet.rows import TABLES
from sigwrap.fleet.s3 import endpoint_at, region_in
from sigwrap.text import printable, shortened

if TYPE_CHECKING:
    import duckdb

_LONGEST_MESSAGE = 300
_DATE = r"/v1/(?:files/)?date=(\d{4}-\d{2}-\d{2})/[^/]*(?:/[^/]*)?$"
_FILES = (".ndjson.gz", ".parquet")
_INSTALL = "pip install 'sigwrap[fleet]'"


def place_of(url: str) -> str:
    """Return the place as engines name it: a path, or s3://BUCKET/PREFIX."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if not (parts.query or parts.fragment or "@" in parts.netloc):
        is_here = parts.netloc in ("", "localhost")
        if parts.scheme == "file" and is_here and parts.path.startswith("/"):
            return unquote(parts.path).rstrip("/") or "/"
        if parts.scheme == "s3" and parts.netloc:
            return url.rstrip("/")
    # The URL itself may hold a password.
    raise UsageError("that is not a lake's URL", "such as file:///srv/lake or s3://BUCKET/PREFIX")


class Lake:
    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        self.place = place_of(url)
        try:
            import duckdb
        except ImportError as error:
            raise UsageError("reading a lake needs DuckDB", _INSTALL) from error
        self._module = duckdb
        self.connection = duckdb.connect(
            config={
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "allow_persistent_secrets": False,  # a session could have written them
            }
        )
        self.execute("SET enable_progress_bar = false")
        spilled = tempfile.mkdtemp(prefix="sigwrap-duckdb-")
        weakref.finalize(self, shutil.rmtree, spilled, ignore_errors=True)
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

        fields = {
            "KEY_ID": environment.get("AWS_ACCESS_KEY_ID"),
            "SECRET": environment.get("AWS_SECRET_ACCESS_KEY"),
            "SESSION_TOKEN": environment.get("AWS_SESSION_TOKEN"),
            "REGION": region_in(environment),
        }
        if not fields["KEY_ID"] or not fields["SECRET"]:
            raise UsageError(
                "no credential for the bucket", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        said = [f"{name} {quoted(value)}" for name, value in fields.items() if value]
        if (endpoint := endpoint_at(environment)) is not None:
            said += [f"ENDPOINT {quoted(endpoint.authority)}", "URL_STYLE 'path'"]
            said += [f"USE_SSL {str(endpoint.is_secure).lower()}"]
        self.execute(f"CREATE SECRET (TYPE s3, SCOPE {quoted(self.place)}, {', '.join(said)})")

    def execute(
        self, sql: str, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Run SQL of sigwrap's own; StoreError if the files can't be read."""
        try:
            return (connection or self.connection).execute(sql)
        except self._module.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> StoreError:
        hint = "remove that file from the lake" if _names_a_file(error) else ""
        return StoreError(f"can't read {self.place}: {_said(error)}", hint)

    def _quoted(self, files: str) -> str:
        return quoted(f"{escape(self.place)}/{files}")

    def _dates(self) -> tuple[set[str], set[str]]:
        """Return the dates that have landed files, and those of which all tables are compacted."""
        self._refuse_unreadable()
        files = self._quoted(f"{ROWS}/date=*/*/*.ndjson.gz")
        self.execute(
            f"CREATE OR REPLACE TEMP TABLE landed_files AS SELECT {FILE} AS file, "
            f"regexp_extract(file, '{_DATE}', 1) AS date FROM glob({files})"
        )
        landed = self.asked("SELECT DISTINCT date FROM landed_files WHERE date <> ''")
        lists = self._quoted(f"{LAKE}/files/date=*/rows.parquet")  # the last file of a date
        found = self.asked(f"SELECT regexp_extract(file, '{_DATE}', 1) FROM glob({lists})")
        return {date for (date,) in landed}, {date for (date,) in found if date}

    def _late(self, dates: set[str]) -> set[str]:
        """Return those of the compacted dates that have files which came later."""
        if not dates:
            return set()
        lists = ", ".join(self._quoted(f"{LAKE}/files/date={d}/rows.parquet") for d in dates)
        found = self.asked(
            "SELECT DISTINCT date FROM landed_files WHERE file NOT IN (SELECT CAST(file AS "
            f"VARCHAR) FROM read_parquet([{lists}], hive_partitioning = false))"
        )
        return {date for (date,) in found} & dates

    def make_views(self, *, raw: bool = False, read_once: bool = False) -> None:
        """Make the views: compacted days from Parquet, others from landed files.

        `raw`: of all files, with every row as often as it is there. `read_once`: for many
        questions, landed files are read now, but not their payloads.
        """
        landed, compacted = self._dates()
        if not landed and not compacted:
            raise StoreError(
                f"there are no sessions in {self.place}", "sigwrap ship --to URL sends some there"
            )
        clean = compacted - (landed if raw else self._late(compacted))
        other = (landed | compacted) - clean
        for table in TABLES:
            sources = []
            if clean:
                sources.append(duckdb_parquet(table, self.place, sorted(clean)))
            if other:
                sources.append(self._unsettled(table, other & landed, other & compacted, raw=raw))
            if other and read_once and table != "processes":
                self.execute(f"CREATE TEMP TABLE landed_{table} AS {_slim(table, sources[-1])}")
                sources[-1] = f"SELECT * FROM landed_{table}"
            self.execute(f"CREATE VIEW rows_{table} AS {' UNION ALL '.join(sources)}")
        for each in views(DUCKDB):
            self.execute(each)
        if read_once:  # each question would find the newest row of each session
            self.execute("CREATE TEMP TABLE sessions AS SELECT * FROM sessions")

    def _unsettled(self, table: str, landed: set[str], compacted: set[str], *, raw: bool) -> str:
        """Return a SELECT of dates that are not compacted, or have rows that came later."""
        files = ", ".join(self._quoted(f"{ROWS}/date={d}/*/*.ndjson.gz") for d in sorted(landed))
        sources = [duckdb_landed(table, f"[{files}]")] if landed else []
        if compacted:
            sources.append(duckdb_parquet(table, self.place, sorted(compacted)))
        select = " UNION ALL ".join(sources)
        return select if raw else once(table, select)

    def _refuse_unreadable(self) -> None:
        """Raise StoreError for a directory that can't be read: DuckDB leaves it out."""
        if self.place.startswith("s3:"):
            return

        def refuse(error: OSError) -> None:
            raise StoreError(f"can't read {error.filename}: {error.strerror}") from error

        for top in (ROWS, LAKE):
            if os.path.lexists(path := f"{self.place}/{top}"):
                for _ in os.walk(path, onerror=refuse):
                    pass

    def asked(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows of SQL of sigwrap's own, which sees what was read once."""
        return [*self._fetched(self.execute(sql))]

    def compact(self, dates: list[str]) -> list[str]:
        """Write each date's rows into one Parquet file a table; return the dates.

        Without dates: all before today that are not compacted, or have files that came later.
        """
        landed, compacted = self._dates()
        if missing := sorted(set(dates) - landed):
            raise UsageError(f"no rows of {', '.join(missing)} in {self.place}")
        today = time.strftime("%Y-%m-%d", time.gmtime())
        due = landed - compacted | self._late(compacted)
        wanted = dates or sorted(each for each in due if each < today)
        for date in wanted:
            self._compact(date)
        return wanted

    def _compact(self, date: str) -> None:
        for table, select in duckdb_compaction(self.place, date):
            folder = f"{self.place}/{LAKE}/{table}/date={date}"
            if not table:
                self.execute(select)
            elif self.place.startswith("s3:"):  # a bucket has a whole object or none
                self.execute(duckdb_copy(select, f"{folder}/rows.parquet"))
            else:
                unfinished = f"{folder}/{os.urandom(8).hex()}.unfinished"
                os.makedirs(folder, exist_ok=True)
                try:
                    self.execute(duckdb_copy(select, unfinished))
                    os.rename(unfinished, f"{folder}/rows.parquet")
                finally:
                    with suppress(FileNotFoundError):
                        os.unlink(unfinished)

    def select(self, sql: str) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        """Run the user's SQL, a single SELECT."""
        try:
            statements = self._module.extract_statements(sql)
            if len(statements) != 1:
                raise UsageError("the SQL has more than one statement", "run them one by one")
            if statements[0].type != self._module.StatementType.SELECT:
                raise UsageError("the SQL is not a SELECT", "only reading is allowed")
            cursor = self.connection.execute(statements[0])
        except self._module.Error as error:
            if _names_a_file(error):
                raise self._unreadable(error) from error
            raise UsageError(f"SQL error: {_said(error)}") from error
        names = tuple(str(each[0]) for each in cursor.description or ())
        return names, self._fetched(cursor)

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Return the rows of SQL of sigwrap's own, which can be read beside others."""
        return self._fetched(self.execute(sql, self.connection.cursor()))

    def _fetched(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
        try:
            while rows := cursor.fetchmany(1_000):
                yield from rows
        except self._module.Error as error:
            raise self._unreadable(error) from error


def _names_a_file(error: Exception) -> bool:
    return any(each in str(error) for each in _FILES)


def _slim(table: str, select: str) -> str:
    """Return a SELECT without the texts that only a check of the chain needs."""
    left_out = {each.name for each in TABLES[table]} & {"payload", "argv", "labels", "missing"}
    empty = ", ".join(f"CAST(NULL AS VARCHAR) AS {name}" for name in sorted(left_out))
    return f"SELECT * REPLACE ({empty}) FROM ({select})"


def _said(error: Exception) -> str:
    return shortened(printable(str(error).partition("\n")[0]), _LONGEST_MESSAGE)
