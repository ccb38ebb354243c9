"""The forms of nvidia-smi's answers become one shape."""

from __future__ import annotations

import pytest

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.smi import claims, claims_any, read_smi
from recovery.reading.smi_words import Form, Process
from tests.checks.smi_texts import query

XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><driver_version>570.172.08</driver_version><attached_gpus>1</attached_gpus>
<gpu id="00000000:0F:00.0"><temperature><gpu_temp>31 C</gpu_temp></temperature>
<processes><process_info><pid>7</pid><process_name>a</process_name>
<used_memory>5 MiB</used_memory></process_info></processes></gpu></nvidia_smi_log>
"""
TABLE = """
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:09.0 Off |                   On |
| N/A   52C    P0            432W /  700W |   11125MiB /  81559MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
|  0    2   0   0  |           11091MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |
+------------------+----------------------------------+-----------+-----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|=========================================================================================|
|    0    2    0            21180      C   /root/tools/memhog                     2296MiB |
+-----------------------------------------------------------------------------------------+
"""


def read(text: str, command: str = "") -> object:
    return read_smi(Printed(text, command=command))


def test_text_xml_csv_and_table_name_the_temperature_alike() -> None:
    texts = (
        query([{"Temperature": {"GPU Current Temp": "31 C"}}]),
        XML,
        "index, temperature.gpu\n0, 31\n",
        TABLE.replace("52C", "31C"),
    )

    assert [read_smi(Printed(t)).gpus[0].number("temperature.gpu") for t in texts] == [31.0] * 4
    assert [read_smi(Printed(t)).form for t in texts] == [
        Form.QUERY,
        Form.XML,
        Form.CSV,
        Form.TABLE,
    ]


def test_a_table_with_mig_has_its_processes_and_no_ecc_count() -> None:
    seen = read_smi(Printed(TABLE))

    assert seen.processes == (Process("GPU0", 21180, "/root/tools/memhog", 2296),)
    assert len(seen.gpus) == 1
    assert not seen.speaks_of(("ecc.",))
    assert seen.gpus[0].text("mig.mode.current") == "Enabled"


def test_a_csv_without_header_is_read_by_its_command() -> None:
    command = "nvidia-smi --query-gpu=index,driver_version --format=csv,noheader"

    assert read_smi(Printed("0, 550.90.07\n", command=command)).driver == "550.90.07"


def test_a_csv_without_header_and_command_cannot_be_read() -> None:
    with pytest.raises(ParseError):
        read_smi(Printed("0, 550.90.07\n"))


def test_a_grep_of_one_section_is_parted_at_its_dashes() -> None:
    text = "    Fabric\n        State      : Completed\n        Status     : Success\n"

    seen = read_smi(Printed(text + "--\n" + text, command="nvidia-smi -q | grep -A2 Fabric"))

    assert [gpu.text("fabric.state") for gpu in seen.gpus] == ["Completed", "Completed"]


def test_one_gpu_of_many_that_was_asked_for_is_not_cut_short() -> None:
    text = query([{"Product Name": "NVIDIA H200"}], attached=8)

    assert read_smi(Printed(text, command="nvidia-smi -q -i 3")).cut == ""
    assert read_smi(Printed(text, command="nvidia-smi -q")).cut != ""


def test_a_last_block_with_fewer_lines_than_the_others_is_cut_short() -> None:
    full = {"Product Name": "NVIDIA H200", "Fan Speed": "N/A"}

    seen = read_smi(Printed(query([full, {"Product Name": "NVIDIA H200"}])))

    assert "GPU1, the last one, lacks" in seen.cut


def test_processes_of_the_long_listing_belong_to_their_gpu() -> None:
    process = {
        "GPU instance ID": "N/A",
        "Process ID": "48213",
        "Type": "C",
        "Name": "python3",
        "Used GPU Memory": "60000 MiB",
    }

    seen = read_smi(Printed(query([{"Processes": "None"}, {"Processes": process}])))

    assert seen.processes == (Process("GPU1", 48213, "python3", 60000),)


def test_the_same_text_is_read_once_for_all_checks() -> None:
    printed = Printed(query([{"Product Name": "NVIDIA H200"}]))

    assert read_smi(printed) is read_smi(Printed(printed.text))


def test_a_check_claims_only_texts_that_speak_of_its_values() -> None:
    text = query([{"Temperature": {"GPU Current Temp": "31 C"}}])

    assert claims("temperature.")(Printed(text))
    assert not claims("ecc.")(Printed(text))
    assert not claims("temperature.")(Printed(text, command="dmesg -T"))


@pytest.mark.parametrize("command", ["nvidia-smi topo -m", "nvidia-smi dmon -c 1", "dmesg"])
def test_answers_of_other_questions_are_not_claimed(command: str) -> None:
    assert not claims_any(Printed("", command=command))


def test_a_log_that_quotes_an_error_line_is_not_an_answer() -> None:
    log = "step 1\n" * 40 + "RuntimeError: No devices were found\n"

    assert not claims_any(Printed(log))
    assert claims_any(Printed("No devices were found\n"))
