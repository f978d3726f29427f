"""Dense layers as compiled code, for where there is no NumPy: the page that plays in the browser."""

import numpy as np

from montecristo_env.core.jit import entry_point
from montecristo_env.core.layout import Float32s, Float32Table

_ZERO = np.float32(0)


@entry_point
def write_layer(
    x: Float32Table, weights: Float32Table, bias: Float32s, cut: bool, out: Float32Table, begin: int, end: int
) -> None:
    """X @ weights + bias by row; what is negative becomes 0 if `cut`. Zeros of x are passed over."""
    for k in range(begin, end):
        to = out[k]
        for j in range(to.size):
            to[j] = bias[j]
        for i in range(x.shape[1]):
            if x[k, i] != _ZERO:
                factor, weight = x[k, i], weights[i]
                for j in range(to.size):
                    to[j] += factor * weight[j]
        if cut:
            for j in range(to.size):
                to[j] = max(to[j], _ZERO)
