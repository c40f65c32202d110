"""Calls that change files, and files that the kernel has refused.

judge    pure: the mediator of calls that change audited files; infers refused files
handler  decodes these calls, and finds their files; tells of files that were probably refused
tree     names and links on the disk that file rules are about; makes folders that rules want
"""
