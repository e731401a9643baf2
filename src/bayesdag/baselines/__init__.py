"""Published methods that results are compared with, written anew from their papers.

`methods/` holds the plug-ins; here is what they are made of, one file per algorithm.
"""
