"""Measurements of published claims of cost."""

import numpy as np
import pytest

from bayesdag.bench import claims


def test_sweeps_end_at_unit_sums_and_are_counted():
    rng = np.random.default_rng(0)
    assert claims.count_sweeps(np.zeros((5, 5))) == 1
    easy, hard = (claims.count_sweeps(size * rng.normal(size=(8, 8))) for size in (0.1, 10.0))
    assert 1 <= easy < hard <= claims.MOST


def test_matrices_of_full_rank_take_more_sweeps_than_those_of_rank_one():
    given = {"d": 10, "temperature": 0.2, "deviation": 0.5}
    one, full = (
        np.mean([claims.sinkhorn_sweeps(s, full_rank=f, **given)["sweeps"] for s in range(5)])
        for f in (False, True)
    )
    assert full > 2 * one


def test_a_step_of_particles_is_timed():
    found = claims.particle_seconds(0, d=3, num_particles=2, num_steps=3)
    assert found["step_seconds"] > 0
    assert found["kernel_cpu"] > 0
    assert found["step_cpu"] > 0


def test_hours_of_a_preset_are_those_of_its_steps():
    found = claims.preset_seconds(0, preset="quick", d=3, num_rows=20, num_steps=2)
    assert found["cpu_hours"] == pytest.approx(found["step_cpu"] * 300 / 3600)
