"""Calls that change files, and files that the kernel has refused.

judge    pure: judges calls that change audited files, and infers refused files
call     what a call asks for, and where that lies
tree     names and links on the disk that file rules are about
handler  gathers the facts for the judge, and makes folders that rules want
"""
