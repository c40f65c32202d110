"""What a log says, for people and for programs: folds over events, and renderers.

verify_session  is the log what its writer wrote?
SummaryFold     what happened, in bounded memory
render_text     the report for a terminal; documents: the same as JSON
timeline_line   one event of a replay
"""
