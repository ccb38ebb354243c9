"""Every alert fires when it should and keeps still when it should not, by Prometheus' own tools."""

import re
import shutil
import subprocess
from functools import cache

import pytest
import yaml

from recovery.cli import SUMMARIES
from recovery.monitoring import Limits, alerts, names, rendered
from tests.monitoring.exported import export, machines

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed"
)
H100 = 'modelName="NVIDIA H100 80GB HBM3"'
CARD = {
    "job": "dcgm",
    "instance": "10.0.0.1:9400",
    "Hostname": "node01",
    "gpu": "3",
    "UUID": "GPU-3",
    "modelName": "NVIDIA H100 80GB HBM3",
}
HOST = {"job": "dcgm", "Hostname": "node01"}
LINK = {"job": "node", "instance": "node01:9100", "device": "mlx5_2", "port": "1"}
NIC = {"job": "node", "instance": "node01:9100", "device": "eth0"}
UP = {"job": "dcgm", "instance": "10.0.0.1:9400"}
RUN = {"cluster": "a", "runbook": "preflight"}


def series(metric, labels, values):
    inside = ",".join(f'{k}="{v}"' for k, v in labels.items())
    return {"series": f"{metric}{{{inside}}}", "values": values}


def temp(values, **labels):
    return series("DCGM_FI_DEV_GPU_TEMP", {**CARD, **labels}, values)


def hot(values):
    return series("DCGM_FI_DEV_MEMORY_TEMP", CARD, values)


def memory(used, free):
    return [
        series("DCGM_FI_DEV_FB_USED", CARD, used),
        series("DCGM_FI_DEV_FB_FREE", CARD, free),
    ]


def power(values, **labels):
    return series("DCGM_FI_DEV_POWER_USAGE", {**CARD, **labels}, values)


def cards(n_cards, values, **labels):
    return [temp(values, UUID=f"GPU-{i}", gpu=str(i), **labels) for i in range(n_cards)]


def xid(values, **labels):
    return series("DCGM_FI_DEV_XID_ERRORS", {**CARD, **labels}, values)


FOR_H100 = {"profile": "h100-sxm8"}
NEWER = {k: v for k, v in CARD.items() if k != "Hostname"} | {"hostname": "node01"}
# Steps of 30 s. (alert, what is measured, when it is asked, labels it fires with, its words)
FIRES = [
    ("GpuTooHot", [temp("91x20")], "9m", [CARD | FOR_H100],
     "node01 GPU 3: 91 C, the limit is 89"),
    ("GpuHot", [temp("86x40")], "15m", [CARD | FOR_H100], "node01 GPU 3: 86 C, the limit is 85"),
    ("GpuMemoryTooHot", [hot("97x20")], "9m", [CARD | FOR_H100],
     "node01 GPU 3: 97 C, the limit is 95"),
    ("PowerSwing", [power("650x15 80x10")], "10m", [{"job": "dcgm"} | FOR_H100],
     "the power of all GPUs together swung by 87.69% within 10 minutes"),
    ("TrainingSilent", [*memory("70000x60", "10000x60"), power("120x60")], "25m", [HOST | FOR_H100],
     "node01: its GPU memory is in use, but no GPU has done work for 15 minutes"),
    ("GpuXid", [xid("0x5 79x20")], "5m", [CARD], "node01 GPU 3: Xid 79"),
    ("GpuXid", [series("DCGM_FI_DEV_XID_ERRORS", NEWER, "0x5 48x20")], "5m", [NEWER],
     "node01 GPU 3: Xid 48"),
    ("GpuXidDegraded", [xid("63x20")], "5m", [CARD], "node01 GPU 3: Xid 63"),
    ("GpuMemoryPeak", memory("40000x10 79500 40000x10", "40000x10 500 40000x10"), "8m", [CARD],
     "node01 GPU 3: 99.38% of its memory was in use"),
    ("GpuRowRemapFailed", [series("DCGM_FI_DEV_ROW_REMAP_FAILURE", CARD, "1x20")], "5m", [CARD],
     "node01 GPU 3: a bad memory row could not be replaced"),
    ("NodeSilent", cards(2, "60x20 stale"), "20m", [HOST],
     "node01: its GPUs have said nothing for 2 minutes"),
    ("GpuGone", [*cards(2, "60x60"), temp("60x20 stale")], "20m", [HOST],
     "node01: fewer GPUs than within the last hour"),
    ("ManyNodesSilent",
     [temp("60x20 stale", Hostname="node01"), temp("60x60", Hostname="node02")], "20m", [{}],
     "50% of the GPU nodes fell silent"),
    ("ExporterSilent", [series("up", UP, "1x5 0x40")], "15m", [UP],
     "10.0.0.1:9400: its exporter does not answer"),
    ("GpuMetricsMissing", [series("up", UP, "1x60")], "20m", [UP],
     "10.0.0.1:9400: its exporter answers, but without DCGM_FI_DEV_GPU_TEMP: "
     "these rules are blind there"),
    ("LinkFlap", [series("node_infiniband_link_downed_total", LINK, "4x20 5x60")], "20m", [LINK],
     "node01:9100 mlx5_2: the link went down"),
    ("LinkFlapping", [series("node_infiniband_link_downed_total", LINK, "0x10 0+1x10 10x60")],
     "30m", [LINK], "node01:9100 mlx5_2: the link went down 10 times in 30 minutes"),
    ("CarrierFlapping", [series("node_network_carrier_changes_total", NIC, "2x10 2+2x5 12x60")],
     "25m", [NIC], "node01:9100 eth0: the carrier comes and goes"),
    ("RunNotDone", [series("recover_run_exit_code", RUN, "3x10")], "2m", [RUN],
     "preflight on a ended with status 3"),
    ("PreflightOld", [series("recover_run_finished_timestamp_seconds", RUN, "-100000x10")], "2m",
     [RUN], "preflight on a: the last one ended 1d 3h 48m 40s ago"),
]  # fmt: skip
STAYS = [
    ("GpuTooHot", [temp("88x40")], "15m"),
    ("GpuTooHot", [temp("9223372036854775794x40")], "15m"),  # DCGM does not know it
    ("GpuTooHot", [temp("95x40", modelName="NVIDIA L40S of tomorrow")], "15m"),
    ("GpuHot", [temp("90x5 60x40")], "5m"),
    ("GpuMemoryTooHot", [hot("9223372036854775794x40")], "15m"),
    ("PowerSwing", [power("650x60")], "20m"),
    ("PowerSwing", [power("90x15 30x10")], "10m"),  # an idle cluster
    ("TrainingSilent", [*memory("70000x60", "10000x60"), power("600x60")], "25m"),
    ("TrainingSilent", [*memory("500x60", "80000x60"), power("80x60")], "25m"),  # no job
    ("GpuXid", [xid("0x5 43x20")], "5m"),  # the program's own fault
    ("GpuXidDegraded", [xid("0x20")], "5m"),
    ("GpuMemoryPeak", memory("70000x20", "10000x20"), "8m"),
    ("GpuRowRemapFailed", [series("DCGM_FI_DEV_ROW_REMAP_FAILURE", CARD, "0x20")], "5m"),
    ("NodeSilent", cards(2, "60x60"), "20m"),
    # A restarted exporter of Kubernetes answers from another address.
    ("NodeSilent", [temp("60x20 stale"), temp("_x20 60x40", instance="10.0.0.9:9400")], "25m"),
    # A job takes the card: the same card, with other labels.
    ("GpuGone", [temp("60x20 stale"), temp("_x20 60x40", pod="train-0")], "25m"),
    ("ManyNodesSilent",
     [temp("60x20 stale", Hostname="node00"), *(temp("60x60", Hostname=f"node{i}")
                                                for i in range(1, 9))], "20m"),
    ("ExporterSilent", [series("up", {"job": "web", "instance": "x"}, "0x60")], "20m"),
    ("GpuMetricsMissing", [series("up", UP, "1x60"), temp("60x60")], "20m"),
    ("LinkFlap", [series("node_infiniband_link_downed_total", LINK, "4x60")], "20m"),
    ("LinkFlapping", [series("node_infiniband_link_downed_total", LINK, "4x10 5x60")], "20m"),
    ("CarrierFlapping", [series("node_network_carrier_changes_total", NIC, "2x10 4x60")], "25m"),
    ("RunNotDone", [series("recover_run_exit_code", RUN, "0x10")], "2m"),
    ("PreflightOld", [series("recover_run_finished_timestamp_seconds", RUN, "0x10")], "2m"),
]  # fmt: skip


RENAMED = dict(
    (names.TEMP, names.MEM_TEMP, names.POWER, names.XID, names.USED, names.FREE, names.REMAP_FAILED)
)


def newer(measured):
    """The same as dcgm-exporter 4.9 names it; of the memory only shares are asked."""
    found = []
    for one in measured:
        name, _, labels = one["series"].partition("{")
        found.append({**one, "series": f"{RENAMED.get(name, name)}{{{labels}"})
    return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return export(tmp_path_factory.mktemp("export"))


@cache
def rules():
    return yaml.safe_load(rendered(machines())["recover-alerts.yaml"])


def rule_of(name, labels):
    found = [r for g in rules()["groups"] for r in g["rules"] if r["alert"] == name]
    return next(r for r in found if labels.get("profile") in (None, r["labels"].get("profile")))


def fires(name, measured, at, labels, words):
    expected = []
    for one in labels:
        rule = rule_of(name, one)
        value = re.search(r"Xid (\d+)", words)
        do = rule["annotations"]["do"].replace("{{ $value }}", value[1] if value else "")
        expected.append(
            {
                "exp_labels": {**one, "severity": rule["labels"]["severity"]},
                "exp_annotations": {"summary": words, "do": do},
            }
        )
    return unit_test(name, measured, at, expected)


def unit_test(name, measured, at, expected):
    asked = {"eval_time": at, "alertname": name, "exp_alerts": expected}
    return {"interval": "30s", "input_series": measured, "alert_rule_test": [asked]}


@needs_promtool
def test_promtool_accepts_the_rules(exported):
    done = subprocess.run(
        ["promtool", "check", "rules", exported / "recover-alerts.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def one_alert(folder, name):
    """A file of tests for one alert, beside a file with its rules alone: so it takes no time."""
    found = [r for g in rules()["groups"] for r in g["rules"] if r["alert"] == name]
    (folder / f"{name}.rules").write_text(
        yaml.safe_dump({"groups": [{"name": "one", "rules": found}]})
    )
    tests = [fires(*case) for case in FIRES if case[0] == name]
    tests += [unit_test(*case, []) for case in STAYS if case[0] == name]
    tests += [{**one, "input_series": newer(one["input_series"])} for one in tests]
    values = {"rule_files": [f"{name}.rules"], "evaluation_interval": "30s", "tests": tests}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    return f"{name}.yaml"


@needs_promtool
def test_every_alert_fires_with_its_words_and_stays_still_without_cause(tmp_path):
    files = [one_alert(tmp_path, name) for name in dict.fromkeys(case[0] for case in FIRES)]

    done = subprocess.run(
        ["promtool", "test", "rules", *files],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("SUCCESS") == len(files)


def test_no_alert_is_without_a_test_for_yes_and_one_for_no():
    names = {rule.name for rule in alerts(machines())}

    assert {case[0] for case in FIRES} == names
    assert {case[0] for case in STAYS} == names


def test_a_machine_without_limits_gets_no_rules_of_its_own():
    unknown = Limits(profile="new", models=("NVIDIA New",))

    assert [r for r in alerts([unknown]) if r.labels] == []


def test_names_of_cards_are_quoted_for_the_expression():
    odd = Limits(profile="odd", models=("A (1+1)",))

    assert odd.selector == '{modelName=~"A \\\\(1\\\\+1\\\\)"}'


@pytest.mark.skipif(shutil.which("amtool") is None, reason="amtool is not installed")
@pytest.mark.parametrize(("severity", "receiver"), [("fail", "on-call"), ("warn", "people")])
def test_alertmanager_reads_the_example_and_routes_by_severity(exported, severity, receiver):
    file = exported / "alertmanager-example.yaml"
    checked = subprocess.run(
        ["amtool", "check-config", file], capture_output=True, text=True, check=False
    )
    routed = subprocess.run(
        ["amtool", "config", "routes", "test", f"--config.file={file}", f"severity={severity}"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert routed.stdout.strip() == receiver


def test_every_command_that_an_alert_names_is_there():
    named = {w for rule in alerts(machines()) for w in re.findall(r"`recover (\w+)", rule.do)}

    assert named
    assert named <= set(SUMMARIES)
