"""Calls that change files, and files that the kernel has refused.

judge    pure: judges calls that change audited files, and infers refused files
audit    what a call asks for, and where that lies
refused  notes suspect commands, and tells of the files that they were probably refused
tree     names and links on the disk that file rules are about; makes folders that rules want
"""
