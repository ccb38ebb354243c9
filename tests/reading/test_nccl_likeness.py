"""Which nameless texts are taken for the output of nccl-tests."""

from recovery.reading.nccl import looks_like_nccl

LIMIT = (
    "slurmstepd: error: *** JOB 8123 ON node001 CANCELLED AT 2026-12-01T03:00:00 "
    "DUE TO TIME LIMIT ***\n"
)


def test_a_job_that_met_its_time_limit_need_not_have_been_a_test() -> None:
    assert not looks_like_nccl(LIMIT)
    assert looks_like_nccl(f"# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor)\n{LIMIT}")
