"""The contract of methods, for options of the baselines that their quick presets do not have."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayesdag import fit, graphs, load, read
from bayesdag.errors import InputError, KnowledgeError
from bayesdag.knowledge import Knowledge
from bayesdag.methods.bcd import BCD
from bayesdag.methods.bootstrap_ges import BootstrapGES
from bayesdag.methods.dds import DDS
from bayesdag.methods.dibs import DiBS
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.scores.bge import BGe
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn
from tests.toys import NAMES, toy_frame

DIBS = replace(DiBS.PRESETS["quick"], num_steps=60, num_particles=6, num_graphs=8)
BCD_QUICK = replace(BCD.PRESETS["quick"], num_steps=60, num_samples=20)
DDS_QUICK = replace(DDS.PRESETS["quick"], num_steps=100, num_samples=20)
OPTIONS = {
    "weighted bootstrap_ges": BootstrapGES(num_samples=6, weighted=True),
    "marginal dibs": replace(DIBS, score=BGe(), num_steps=150),
    "weighted dibs": replace(DIBS, weighted=True),
    "dibs by score functions": replace(DIBS, score_function=True),
    # Cycles have to cost more than the edges that a short run would close them with.
    "dibs with networks": replace(
        DIBS, mechanism=MLP(width=4), batch_size=100, num_steps=300, beta=4.0
    ),
    "dibs with known noise": replace(DIBS, noise_variance=0.5),
    "bcd with a flow": replace(BCD_QUICK, flow_layers=1),
    "bcd with equal noise": replace(BCD_QUICK, equal_noise=True),
    "dds by sinkhorn": replace(DDS_QUICK, sinkhorn=Sinkhorn(temperature=0.2)),
    "dds without patience": replace(DDS_QUICK, patience=None),
}
KNOWN = {
    "required": {"required": [("price", "rain")]},
    "forbidden": {"forbidden": [("rain", "soil"), ("soil", "rain")]},
    "tiers": {"tiers": [["crop"], ["price", "soil"], ["rain"]]},
    "beliefs": {"beliefs": [("price", "crop", 0.999)]},
}
every_option = pytest.mark.parametrize("method", OPTIONS.values(), ids=list(OPTIONS))
pytestmark = pytest.mark.slow  # each option is compiled for itself


@every_option
def test_draws_are_acyclic_and_are_kept_as_they_are(method, tmp_path):
    posterior = fit(toy_frame(), method, seed=3)
    assert graphs.is_acyclic(posterior.graphs).all()
    assert posterior.weights.sum() == pytest.approx(1)
    posterior.save(tmp_path / "one.nc")
    fit(toy_frame(), method, seed=3).save(tmp_path / "two.nc")
    assert (tmp_path / "one.nc").read_bytes() == (tmp_path / "two.nc").read_bytes()
    again = load(tmp_path / "one.nc")
    asked = {"cause": "rain", "outcome": "crop", "values": (40, 60)}
    assert again.effect(**asked).mean == posterior.effect(**asked).mean
    assert np.isfinite(again.effect(**asked).mean)


@every_option
@pytest.mark.parametrize("kind", KNOWN)
def test_knowledge_is_obeyed_or_refused_by_name(method, kind):
    constraints = Knowledge.read(KNOWN[kind]).bind(NAMES)
    if refused := constraints.kinds - method.supported_constraints:
        with pytest.raises(KnowledgeError, match=sorted(refused)[0]):
            fit(toy_frame(), method, knowledge=KNOWN[kind])
        return
    posterior = fit(toy_frame(), method, knowledge=KNOWN[kind], seed=3)
    assert constraints.allows(posterior.graphs).all()


@every_option
def test_cells_that_were_set_leave_the_likelihood_or_are_refused(method):
    frame = toy_frame()
    half = len(frame) // 2
    frame.loc[half:, "crop"] = np.random.default_rng(1).normal(0, 0.3, len(frame) - half)
    mask = np.zeros(frame.shape, dtype=bool)
    mask[half:, 2] = True
    data = read(frame, interventions=mask)
    if not method.supports_interventions:
        with pytest.raises(InputError, match="interventional"):
            fit(data, method)
        return
    blind, seeing = (fit(given, method, seed=3) for given in (read(frame), data))
    shapes = blind.graphs.shape == seeing.graphs.shape
    assert not shapes or not np.array_equal(seeing.stats["log_joint"], blind.stats["log_joint"])


@every_option
def test_nothing_acts_on_environments_or_they_are_refused(method):
    frame = toy_frame()
    frame["soil"] += 3 * (np.arange(len(frame)) % 2)
    frame["crop"] = np.where(np.arange(len(frame)) % 2, "wet", "dry")
    given: dict[str, Any] = {"environment": "crop=dry"}
    if "environments" not in method.supported_constraints:
        with pytest.raises(KnowledgeError, match="environments"):
            fit(frame, method, **given)
        return
    posterior = fit(frame, method, seed=3, **given)
    assert not posterior.graphs[..., 3].any()
    assert posterior.names == ("rain", "soil", "price", "crop=wet")
