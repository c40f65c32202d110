"""Sessions of many machines in one place, which any engine can read. No run imports this.

rows      a session's log as rows, cut into segments
objects   where segments go: a folder, or a bucket
s3        a bucket of a store that speaks S3
shipping  delivers each segment once, and remembers how far
"""
