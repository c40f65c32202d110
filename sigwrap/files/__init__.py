"""Calls that change files, and files that the kernel has refused.

judge    pure: the mediator of calls that change audited files; infers refused files
audit    the handler of these calls: decodes them, and finds their files
refused  notes suspect commands, and tells of the files that they were probably refused
tree     names and links on the disk that file rules are about; makes folders that rules want
"""
