"""What was folded, as people and programs read it.

verdict       how the session ended, in a sentence
verification  whether a log is what its writer wrote
text          the report for a terminal
steps         what the agent did, a line each
tree          the process tree for a terminal
markdown      the same for a CI job's summary
findings      what needs attention, in words
rules         proposed rules, as the part of a policy that they would be
handed        the same of work that was handed to servers outside
incidents     what happened to the session itself, in words
layout        lines for a terminal of some width
documents     the same reports as JSON
sessions      the list of sessions for a terminal
page          the report as one HTML file, of the files in page_parts
event_rows    events for a page that shows some thousands of them
live          an event as it comes, in a line
what_if       what another policy would have decided, in each form
detail        an event in a few words
times         moments and spans
sizes         how large something is
style         colour
"""
