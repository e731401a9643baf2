"""Estimates of the gradient in the mask logits; they stand in `mask_gradients`."""
