"""Many sessions of many machines in one place: what a run that ships nothing never imports.

rows         a session's log as flat rows, in segments
lake         the rows as tables and views of DuckDB, ClickHouse, Spark and Trino
questions    what the page of a lake and dashboards ask, as SQL
page         the page of a lake: its answers as one HTML file
"""
