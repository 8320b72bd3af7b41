"""bfloat16 of each family: as near to float32 as transformers' bfloat16 is."""

import numpy as np
import pytest
from test_llm_families import language_models, written
from test_llm_positions import RECORDED, more

from kernwright import llm

LIMIT = 1.1  # times the divergence of transformers


@pytest.mark.parametrize("name", language_models.MODELS)
def test_divergence_is_no_larger_than_that_of_transformers(name, tmp_path):
    folder = written(tmp_path, name)
    rows = []
    for dtype in ("float32", "bfloat16"):
        model = llm.load(folder, dtype=dtype)
        rows.append(np.concatenate([model.logits(each).numpy() for each in more.prompts()]))
    found = float(np.median(more.divergences(*rows)))
    assert 0 < found <= LIMIT * RECORDED["kl"][name]
