"""Some random cases next to real TensorFlow, where it is installed; tests/workers/against_tensorflow.py tries more."""

import pytest

pytest.importorskip("tensorflow", reason="tensorflow-cpu is not installed: the recorded cases are all there is")


def test_random_cases_give_what_tensorflow_gives():
    from workers.against_tensorflow import able, compare

    ended, wrong = compare(able(), 500, 0, quiet=True)
    assert not wrong, "\n".join(wrong)
    assert ended["equal"] > 250
