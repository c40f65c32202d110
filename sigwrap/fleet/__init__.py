"""Sessions for servers of others. A run imports nothing of this.

otlp          OpenTelemetry: events as log records, processes as spans
otlp_sender   sends them to a collector
"""
