"""Arrays that measures take."""

import numpy as np
from jaxtyping import Bool, Float, Shaped

Truth = Shaped[np.ndarray, "d d"]
Sample = Shaped[np.ndarray, "s d d"]
SampleWeights = Float[np.ndarray, " s"] | None
Probabilities = Float[np.ndarray, "d d"]
Unknown = Bool[np.ndarray, "d d"] | None
