"""Components of families: the models that a family is averaged over, and their prior."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bayesdag.scores._mixed.features import MixedClass, Scale


class Component(NamedTuple):
    """One model of a family.

    Attributes:
        scale: of the measurements.
        kind: class of the function; None: a table of probabilities.
        hyper: prior scale; of counts also the dispersion, of ordinal columns also whether the
            regression is an ordered one (1) or not (0).
    """

    scale: Scale
    kind: MixedClass | None
    hyper: tuple[float, ...] = ()


TABLE = Component(Scale.RAW, None)
SIMPLE = tuple(kind for kind in MixedClass if kind != MixedClass.NETWORK)


def log_prior(
    labels: list[Component], values: Float[np.ndarray, "m c"]
) -> Float[np.ndarray, "m c"]:
    """Classes that a family has are equally probable, and so are the models in each."""
    kinds = np.array([len(MixedClass) if c.kind is None else int(c.kind) for c in labels])
    known = np.isfinite(values)
    num_classes = np.stack([known[:, kinds == k].any(axis=1) for k in np.unique(kinds)]).sum(0)
    each = (known[:, :, None] & (kinds[:, None] == kinds[None, :])[None]).sum(axis=1)
    return -np.log(num_classes)[:, None] - np.log(np.maximum(each, 1))
