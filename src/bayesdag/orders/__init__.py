"""The posterior over orders of the variables, with graphs and functions summed out.

Read in this order: `local_scores` (what a node with its parents is worth), `parent_trees` and
`search` (where the posterior mass is, with all predecessors as possible parents),
`candidates` and `tables` (that region as tables), `chains` (order chains that look up), and
`region`, which puts them together until nothing is missing from the tables.
"""
