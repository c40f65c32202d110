"""The rows as tables and views of an engine: SQL text.

Each engine has three tables, `rows_events`, `rows_processes` and `rows_sessions`, and over them the
views of `sigwrap query`, so the same SQL runs on all of them. Only the types, the quote character
and what reads or writes files differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from glob import escape
from typing import NamedTuple

from sigwrap.errors import UsageError
from sigwrap.fleet.rows import EVENT_VIEWS, RECORDS, TABLES
from sigwrap.log.schema import INTEGER, REAL, TEXT, VIEWS, Column, words_in_sql
from sigwrap.text import printable

ROWS, LAKE = "rows/v1", "lake/v1"
_LARGEST_ROW = 64 << 20
# Two rows with the same are one row, sent twice.
_IDENTITY = {
    "events": ("session", "seq", "hash"),
    "processes": ("session", "pid", "started_ns"),
    "sessions": ("session", "events", "head", "state"),
}
_RECORD = Column("record", TEXT, "")
LANDED = tuple({each.name: each for each in (_RECORD, *sum(TABLES.values(), ()))}.values())


class Dialect(NamedTuple):
    quote: str
    types: dict[str, str]
    final: str = ""  # after the name of a table: read each row once

    def named(self, *columns: Column | str) -> str:
        names = (each if isinstance(each, str) else each.name for each in columns)
        return ", ".join(f"{self.quote}{name}{self.quote}" for name in names)

    def typed(self, columns: tuple[Column, ...]) -> str:
        return ", ".join(f"{self.named(each)} {self.types[each.type]}" for each in columns)


DUCKDB = Dialect('"', {TEXT: "VARCHAR", INTEGER: "BIGINT", REAL: "DOUBLE"})
CLICKHOUSE = Dialect(
    "`",
    {TEXT: "Nullable(String)", INTEGER: "Nullable(Int64)", REAL: "Nullable(Float64)"},
    " FINAL",
)
SPARK = Dialect("`", {TEXT: "STRING", INTEGER: "BIGINT", REAL: "DOUBLE"})
TRINO = Dialect('"', {TEXT: "varchar", INTEGER: "bigint", REAL: "double"})


def views(dialect: Dialect) -> Iterator[str]:
    """Yield the views of `sigwrap query`, over the three tables."""
    named, final = dialect.named, dialect.final
    for view in VIEWS.values():
        source = f"rows_{view.name if view.name in TABLES else 'events'}{final}"
        where = ""
        if view in EVENT_VIEWS:
            where = f" WHERE {named('counted')} = 1 AND {named('type')} IN "
            where += f"({words_in_sql(view.types)})"
        elif view.name == "sessions":  # a session has a row in each of its segments
            newest = (
                f"{named('events')} DESC, CASE {named('state')} WHEN 'running' THEN 1 ELSE 0 END"
            )
            source = (
                f"(SELECT *, row_number() OVER (PARTITION BY {named('session')} ORDER BY {newest}) "
                f"AS place FROM {source}) AS numbered"
            )
            where = " WHERE place = 1"
        columns = named(*view.columns)
        yield f"CREATE OR REPLACE VIEW {named(view.name)} AS SELECT {columns} FROM {source}{where}"


# DuckDB


def duckdb_landed(table: str, files: str) -> str:
    """Return a SELECT of a table's rows from landed files: a glob, or a list of them."""
    columns = ", ".join(f"'{each.name}': '{DUCKDB.types[each.type]}'" for each in LANDED)
    return (
        f"SELECT {DUCKDB.named(*TABLES[table])} FROM read_json({files}, columns = {{{columns}}}, "
        f"format = 'newline_delimited', compression = 'gzip', hive_partitioning = false, "
        f"maximum_object_size = {_LARGEST_ROW}) WHERE record = '{RECORDS[table]}'"
    )


def duckdb_parquet(table: str, url: str, dates: Iterable[str] = ("*",)) -> str:
    folder = f"{escape(url)}/{LAKE}/{table}"
    files = ", ".join(quoted(f"{folder}/date={each}/rows.parquet") for each in dates)
    columns = ", ".join(
        f"CAST({DUCKDB.named(each)} AS {DUCKDB.types[each.type]}) AS {DUCKDB.named(each)}"
        for each in TABLES[table]
    )
    return (
        f"SELECT {columns} FROM read_parquet([{files}], union_by_name = true, "
        "hive_partitioning = true, hive_types = {'date': VARCHAR})"
    )


def once(table: str, select: str) -> str:
    """Return a SELECT of each row once, however often it was sent."""
    return f"SELECT DISTINCT ON ({DUCKDB.named(*_IDENTITY[table])}) * FROM ({select})"


FILE = r"regexp_extract(file, '[^/]*/[^/]*$')"  # SESSION/NAME of a landed file


def duckdb_compaction(url: str, date: str) -> Iterator[tuple[str, str]]:
    """Yield a table of the lake and the SELECT that makes its Parquet file of that date.

    The last table lists the files that the others were made of. It is read first: a file that
    comes meanwhile is late.
    """
    files = quoted(f"{escape(url)}/{ROWS}/date={date}/*/*.ndjson.gz")
    yield "", f"CREATE OR REPLACE TEMP TABLE files AS SELECT {FILE} AS file FROM glob({files})"
    for table in TABLES:
        identity = DUCKDB.named(*_IDENTITY[table])
        rows = once(table, duckdb_landed(table, files))
        yield table, f"SELECT * EXCLUDE (date) FROM ({rows}) ORDER BY {identity}"
    yield "files", "SELECT file FROM files"


def duckdb_copy(select: str, place: str) -> str:
    return f"COPY ({select}) TO {quoted(place)} (FORMAT parquet, COMPRESSION zstd)"


def _duckdb(url: str, date: str) -> Iterator[str]:
    yield "-- For a bucket: INSTALL httpfs; CREATE SECRET (TYPE s3, PROVIDER credential_chain);"
    yield "-- Compaction of a day; again, if sessions of that day arrive later. In a folder, make"
    yield f"-- the directories {LAKE}/{{{','.join(TABLES)},files}}/date={date} first."
    for table, select in duckdb_compaction(url, date):
        place = f"{url}/{LAKE}/{table}/date={date}/rows.parquet"
        yield f"{duckdb_copy(select, place) if table else select};"
    yield "-- Tables: compacted days. For days that only landed: sigwrap query --lake."
    for table in TABLES:
        yield f"CREATE OR REPLACE VIEW rows_{table} AS {duckdb_parquet(table, url)};"
    yield from (f"{each};" for each in views(DUCKDB))


# ClickHouse


def _clickhouse(url: str, date: str) -> Iterator[str]:
    yield "-- Each INSERT may be repeated: rows sent twice are merged."
    is_file = url.startswith("/")
    struct = CLICKHOUSE.typed(LANDED).replace("'", "")
    for table, columns in TABLES.items():
        identity = _IDENTITY[table]
        needed = {*identity, "date"}
        typed = ", ".join(
            f"{CLICKHOUSE.named(each)} {CLICKHOUSE.types[each.type][9:-1]}"
            if each.name in needed
            else CLICKHOUSE.typed((each,))
            for each in columns
        )
        yield (
            f"CREATE TABLE IF NOT EXISTS rows_{table} ({typed}) ENGINE = ReplacingMergeTree "
            f"PARTITION BY {CLICKHOUSE.named('date')} ORDER BY ({CLICKHOUSE.named(*identity)});"
        )
        place = quoted(f"{url}/{ROWS}/date={date}/*/*.ndjson.gz")
        source = f"{'file' if is_file else 's3'}({place}, 'JSONEachRow', '{struct}')"
        names = CLICKHOUSE.named(*columns)
        yield (
            f"INSERT INTO rows_{table} ({names}) SELECT {names} FROM {source} "
            f"WHERE record = '{RECORDS[table]}' SETTINGS use_hive_partitioning = 0;"
        )
    yield from (f"{each};" for each in views(CLICKHOUSE))


# Spark


def _spark(url: str, date: str) -> Iterator[str]:
    url = url.replace("s3://", "s3a://", 1)
    yield (
        f"CREATE OR REPLACE TEMPORARY VIEW landed ({SPARK.typed(LANDED)}) USING json OPTIONS "
        f"(path {quoted(f'{url}/{ROWS}/date={date}')}, recursiveFileLookup 'true');"
    )
    yield "SET spark.sql.sources.partitionOverwriteMode = dynamic;"
    for table, columns in TABLES.items():
        names, identity = SPARK.named(*columns), SPARK.named(*_IDENTITY[table])
        yield (
            f"CREATE TABLE IF NOT EXISTS rows_{table} ({SPARK.typed(columns)}) USING parquet "
            f"PARTITIONED BY (`date`) LOCATION {quoted(f'{url}/{LAKE}/{table}')};"
        )
        yield (
            f"INSERT OVERWRITE rows_{table} SELECT {names} FROM (SELECT *, row_number() OVER "
            f"(PARTITION BY {identity} ORDER BY {identity}) AS place FROM landed "
            f"WHERE record = '{RECORDS[table]}') WHERE place = 1;"
        )
    yield from (f"{each};" for each in views(SPARK))


# Trino


def _trino(url: str, date: str) -> Iterator[str]:
    yield "-- In a schema of the Hive connector. DuckDB or Spark writes the Parquet files."
    for table, columns in TABLES.items():
        typed = TRINO.typed(columns)
        yield (
            f"CREATE TABLE IF NOT EXISTS rows_{table} ({typed}) WITH (format = 'PARQUET', "
            f"external_location = {quoted(f'{url}/{LAKE}/{table}')}, "
            "partitioned_by = ARRAY['date']);"
        )
        yield f"CALL system.sync_partition_metadata(CURRENT_SCHEMA, 'rows_{table}', 'FULL');"
    yield from (f"{each};" for each in views(TRINO))


SCRIPTS = {"duckdb": _duckdb, "clickhouse": _clickhouse, "spark": _spark, "trino": _trino}


def quoted(text: str) -> str:
    """Return SQL text; no backslash, which some engines take for an escape."""
    if "\\" in text:
        raise UsageError(f"{printable(text)}: a backslash can't be in a lake's URL")
    return "'" + text.replace("'", "''") + "'"
