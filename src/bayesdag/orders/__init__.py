"""From a score to draws of orders.

Read in this order: `local_scores` (scores of a node with its parents), `parent_search` and
`batched_parent_search` (the best parents among predecessors), `search` and `batched_search` (the
best orders), `strategies` (which of them suits a score), `candidates` and `score_tables` (what
chains look up), `tempering` (the chains), `pipeline` (all of it in turn), `noise_averaging`.
"""
