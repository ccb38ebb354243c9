"""The ``-J`` file below the text it belongs to: its numbers, the ranks of the text."""

from recovery.reading.nccl import read_nccl

TEXT = """# nThread 1 nGpus 1 minBytes 1024 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: 20
#  Rank  0 Group  0 Pid   4242 on         n1 device  0 [0x1a] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4242 on         n2 device  0 [0x1a] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw #wrong
        1024           256     float     sum      -1    10.00    0.10    0.10      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.1
"""
FILE = (
    '{"version":3,"args":["all_reduce_perf"],"config":{"ngpus":1,"devices":[{"rank":0}]},"results":'
    '[{"size":1024,"out_of_place":{"time":10.0,"alg_bw":0.10241,"bus_bw":0.10243,"nwrong":0.0}}],'
    '"out_of_bounds":{"count":0},"average_bus_bandwidth":{"bandwidth":0.10243},"end_time":"x"}'
)


def test_the_numbers_of_the_file_are_preferred_and_the_ranks_of_the_text_stay():
    found = read_nccl(f"{TEXT}{FILE}\n")

    assert found.body.is_json
    assert (found.rows[0].busbw_gb_per_s, found.n_ranks, found.hosts) == (0.10243, 2, ("n1", "n2"))


def test_a_file_that_is_cut_short_says_less_than_the_text():
    found = read_nccl(f"{TEXT}{FILE[:-40]}\n")

    assert not found.body.is_json
    assert (found.rows[0].busbw_gb_per_s, found.complete) == (0.10, True)


def test_where_only_the_file_can_be_read_it_is_enough():
    found = read_nccl(f"# a layout of tomorrow\n{FILE}\n")

    assert found.complete
    assert found.rows[0].busbw_gb_per_s == 0.10243


def test_ranks_are_those_of_one_communicator_of_several_in_a_launch():
    split = TEXT.replace("Rank  1 Group  0", "Rank  1 Group  1")
    two = split.replace(
        "#       size", "#  Rank  2 Group  1 Pid 1 on n3 device 0 [0x1a] X\n"
        "#  Rank  3 Group  0 Pid 1 on n4 device 0 [0x1a] X\n#       size",
    )  # fmt: skip

    found = read_nccl(two)

    assert (found.body.n_groups, found.n_ranks) == (2, 2)
    assert found.body.hosts_of_one_group == ("n1", "n4")
