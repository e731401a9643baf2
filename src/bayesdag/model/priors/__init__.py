"""Priors: what is believed before the data are seen.

A structure prior is a mixture of components; each charges a node with k parents the log
weight `penalty[k]`. That is all a score table needs, and enough for every usual prior. Under
the *order-modular* reading (the one that node potentials induce) these weights are shared
out over pairs of an order and a DAG that agrees with it, so a DAG counts once for each of its
orders; under the *graph-modular* one over DAGs.
"""
