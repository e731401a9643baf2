"""Moves of masks and their logits given an order, from `mask_moves`."""
