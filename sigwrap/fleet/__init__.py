"""Many sessions of many machines in one place: what a run that ships nothing never imports.

rows         a session's log as flat rows, in segments
objects      where segments go: a folder, or a bucket
http         requests to one HTTP server, with retries and a deadline
s3           a bucket of a store that speaks S3
shipping     delivers each segment once, and remembers how far
live         delivers what a session records while it runs
lake         the rows as tables and views of DuckDB, ClickHouse, Spark and Trino
duck         a lake read by DuckDB
audit        checks of a lake: hash chains, two histories, missing ends, changed columns
otlp         OpenTelemetry: events as log records, processes as spans
otlp_sender  sends them to a collector
questions    what the page of a lake and dashboards ask, as SQL
page         the page of a lake: its answers as one HTML file
"""
