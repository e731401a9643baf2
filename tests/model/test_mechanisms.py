"""The neural mechanism: the network is ζ and ℓ of the paper, of the published size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag.model.mechanisms.neural import NeuralMechanism

D, N = 4, 6


@pytest.fixture
def graph():
    """0 -> 1, 0 -> 2, 1 -> 2; 3 stands alone."""
    return jnp.zeros((D, D)).at[jnp.array([0, 0, 1]), jnp.array([1, 2, 2])].set(1.0)


def plain_network(weights, inputs):
    """Linear, LeakyReLU, LayerNorm, linear; one row at a time, as the paper describes it."""
    hidden = inputs @ weights["first"] + weights["bias"]
    hidden = np.where(hidden > 0, hidden, 0.01 * hidden)
    normal = (hidden - hidden.mean()) / np.sqrt(hidden.var() + 1e-5)
    normal = normal * weights["gain"] + weights["offset"]
    return normal @ weights["output"] + weights["output_bias"]


def wide(network, output):
    """The first layer as one matrix over [value of each variable, embedding]."""
    plain = {name: np.asarray(network[name]) for name in ("bias", "gain", "offset")}
    first = np.concatenate([network["input"], network["embedding"]])
    return plain | {"first": first, "output": output, "output_bias": network["output_bias"]}


@pytest.mark.parametrize("edge_weights", [False, True])
def test_the_factored_network_is_the_wide_one(edge_weights, graph, key):
    """ζ(u_i, Σ_j G_ji ℓ(u_j, x_j)) with one-hot inputs of width 2d and d outputs, one kept."""
    mechanism = NeuralMechanism(width=7, edge_weights=edge_weights)
    params, x = mechanism.init(key, D), np.asarray(jax.random.normal(key, (N, D)))
    inner = wide(params["inner"], np.asarray(params["inner"]["output"]))
    outer = wide(params["outer"], np.asarray(params["outer"]["output"]).T)
    embedding = np.asarray(params["embedding"])
    weights = np.asarray(graph) * (np.asarray(params["edges"]) if edge_weights else 1.0)
    wanted = np.empty((N, D))
    for n in range(N):
        messages = [
            plain_network(inner, np.concatenate([x[n, j] * np.eye(D)[j], embedding[j]]))
            for j in range(D)
        ]
        for i in range(D):
            total = sum(weights[j, i] * messages[j] for j in range(D))
            wanted[n, i] = plain_network(outer, np.concatenate([total, embedding[i]]))[i]
    found = jax.jit(mechanism)(params, jnp.asarray(x), graph)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_the_network_has_the_published_size_and_start(key):
    params = NeuralMechanism(edge_weights=True).init(key, 20)
    assert params["inner"]["input"].shape == (20, 80)
    assert float(jnp.abs(params["inner"]["input"]).max()) <= 40**-0.5
    assert float(jnp.abs(params["outer"]["output"]).max()) <= 80**-0.5
    assert float(params["embedding"].std()) == pytest.approx(0.01, rel=0.2)
    assert float(params["edges"].std()) == pytest.approx(0.1, rel=0.2)
