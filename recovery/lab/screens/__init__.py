"""What the tools of a node print, as text made from its `Machine`. Pure.

Each module gives screens by file name; the stand-in tools in ``recovery/lab/tools`` print these
files. They are rendered when the state of a node changes, so that a tool starts in a millisecond.
"""
