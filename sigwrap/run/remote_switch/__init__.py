"""The remote kill switch of a run: a URL that is asked every 10 s whether the run is to be killed.
Imported only where a run has one, before COMMAND may run.

switch        the loop's side: when to ask, what comes of an answer, and of none
address       the URL
proxies       through whom an https URL is asked
certificates  whom https believes, read at the start
poll          one question, from the connection to the answer, within its time
http          one GET as bytes
"""
