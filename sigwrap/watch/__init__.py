"""A place to watch all sessions of a store from, and to answer what they ask.

board      pure: what is seen at a moment, of every session
documents  the same as JSON
"""
