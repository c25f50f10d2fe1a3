"""What is above a ceiling is dropped with a mark that the user sees, and ends nothing else."""

import pytest

from channels import Channels


@pytest.mark.parametrize("mib, words", [(70, "an output of"), (140, "")], ids=["frame", "connection"])
def test_an_output_above_the_ceiling_leaves_a_mark_and_the_cell_ends(shared, kernel, mib, words):
    with Channels(shared, kernel("python3")) as c:
        # not by print: our kernel sends that in pieces
        run = c.run("from IPython.display import display\nprint('before', flush=True)\n"
                    f"display({{'text/plain': 'x' * ({mib} << 20)}}, raw=True)\n1 + 1", timeout=120)
        assert run.status == "ok"
        assert run.text.startswith("before\n")
        assert "[holdcell]" in run.stream("stderr") and words in run.stream("stderr")
        assert not run.of("display_data")
        assert c.run("'still here'", timeout=60).result == "'still here'"


def test_many_outputs_in_one_cell_below_the_ceiling_arrive_whole(shared, kernel):
    with Channels(shared, kernel("python3")) as c:
        run = c.run("for i in range(24): print('x' * (1 << 20), flush=True)", timeout=120)
        assert run.status == "ok"
        assert len(run.text) == 24 * ((1 << 20) + 1)
