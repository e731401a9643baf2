"""How masks and their logits move given an order; the moves stand in `mask_moves`."""
