"""The screens of the InfiniBand tools.

Source: ibstat and ibv_devinfo of rdma-core 39 and later, ibdev2netdev of MLNX_OFED.
"""

from __future__ import annotations

from recovery.lab.hardware import NIC_BUS, Hca, Machine

SPEEDS = {400: "4X NDR", 200: "4X HDR", 100: "4X EDR"}


def render(machine: Machine) -> dict[str, str]:
    """All screens by file name."""
    return {
        "ibstat": "".join(_ibstat(h) for h in machine.hcas),
        "ibstat-l": "".join(f"{h.name}\n" for h in machine.hcas),
        "ibv_devinfo": "".join(_devinfo(h) for h in machine.hcas),
        "ibdev2netdev": "".join(_netdev(h, k) for k, h in enumerate(machine.hcas)),
        "ibstatus": "".join(_ibstatus(h) for h in machine.hcas),
        "rdma-link": "".join(_rdma(h) for h in machine.hcas),
    }


def _ibstat(hca: Hca) -> str:
    state, physical = ("Active", "LinkUp") if hca.active else ("Down", "Polling")
    return (
        f"CA '{hca.name}'\n\tCA type: MT4129\n\tNumber of ports: 1\n"
        "\tFirmware version: 28.39.3560\n\tHardware version: 0\n"
        f"\tNode GUID: {hca.guid}\n\tSystem image GUID: {hca.guid}\n"
        f"\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: {physical}\n"
        f"\t\tRate: {hca.rate_gbit}\n\t\tBase lid: {hca.lid}\n\t\tLMC: 0\n\t\tSM lid: 1\n"
        f"\t\tCapability mask: 0xa751e848\n\t\tPort GUID: {hca.guid}\n"
        "\t\tLink layer: InfiniBand\n"
    )


def _devinfo(hca: Hca) -> str:
    digits = hca.guid[2:]
    guid = ":".join(digits[i : i + 4] for i in range(0, 16, 4))
    state = "PORT_ACTIVE (4)" if hca.active else "PORT_DOWN (1)"
    return (
        f"hca_id:\t{hca.name}\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.39.3560\n"
        f"\tnode_guid:\t\t\t{guid}\n\tsys_image_guid:\t\t\t{guid}\n"
        "\tvendor_id:\t\t\t0x02c9\n\tvendor_part_id:\t\t\t4129\n\thw_ver:\t\t\t\t0x0\n"
        "\tboard_id:\t\t\tMT_0000000838\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
        f"\t\t\tstate:\t\t\t{state}\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 (5)\n"
        f"\t\t\tsm_lid:\t\t\t1\n\t\t\tport_lid:\t\t{hca.lid}\n\t\t\tport_lmc:\t\t0x00\n"
        "\t\t\tlink_layer:\t\tInfiniBand\n\n"
    )


def _netdev(hca: Hca, k: int) -> str:
    return f"{hca.name} port 1 ==> ibp{int(NIC_BUS[k], 16)}s0 ({'Up' if hca.active else 'Down'})\n"


def _ibstatus(hca: Hca) -> str:
    speed = SPEEDS.get(hca.rate_gbit, "4X")
    digits = hca.guid[2:]
    guid = ":".join(digits[i : i + 4] for i in range(0, 16, 4))
    state, physical = ("4: ACTIVE", "5: LinkUp") if hca.active else ("1: DOWN", "2: Polling")
    return (
        f"Infiniband device '{hca.name}' port 1 status:\n"
        f"\tdefault gid:\t fe80:0000:0000:0000:{guid}\n\tbase lid:\t {hex(hca.lid)}\n"
        f"\tsm lid:\t\t 0x1\n\tstate:\t\t {state}\n\tphys state:\t {physical}\n"
        f"\trate:\t\t {hca.rate_gbit} Gb/sec ({speed})\n\tlink_layer:\t InfiniBand\n\n"
    )


def _rdma(hca: Hca) -> str:
    state, physical = ("ACTIVE", "LINK_UP") if hca.active else ("DOWN", "POLLING")
    return (
        f"link {hca.name}/1 subnet_prefix fe80:0000:0000:0000 lid {hca.lid} sm_lid 1 lmc 0 "
        f"state {state} physical_state {physical} \n"
    )
