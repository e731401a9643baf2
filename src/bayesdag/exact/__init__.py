"""Exact sums over all DAGs, by dynamic programming over subsets of the variables.

Everything is a function of score tables: `tables[i, S]` is the log weight of variable i with
the parent set S, a number whose bit j says whether j is a parent; sets that contain i itself
weigh nothing (-inf). `order_modular` adds up pairs of an order and a DAG, `graph_modular` DAGs;
both offer the same functions in the same order: `sums`, `parent_sets`, `ancestors`, `draw`.
"""
