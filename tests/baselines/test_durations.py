"""Methods that may take minutes say so beforehand."""

import pytest

from bayesdag.methods.bcd import BCD
from bayesdag.methods.bootstrap_ges import BootstrapGES
from bayesdag.methods.cam import CAM
from bayesdag.methods.dibs import DiBS
from bayesdag.types import Timed

LONG = [CAM(), BootstrapGES(), DiBS(), DiBS.PRESETS["mlp"], BCD()]


@pytest.mark.parametrize("method", LONG, ids=["cam", "ges", "dibs", "dibs, networks", "bcd"])
def test_more_variables_take_longer_and_there_is_a_remedy(method):
    assert isinstance(method, Timed)
    small, large = (method.expected_duration(1000, d) for d in (10, 100))
    assert 0 < small.seconds < large.seconds
    assert large.faster
