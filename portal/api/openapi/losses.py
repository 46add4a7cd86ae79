"""The schema of loss responses. They are rows of numbers, for which no serializer exists."""

from typing import Any

from portal.telemetry.router_loss_ingest import BUFFERS, OF_INTERFACES, OF_ROUTERS

_MEANINGS = {
    "rx_packets": "Frames received.",
    "tx_packets": "Frames sent.",
    "drops": "Received frames that VPP dropped, for any reason.",
    "rx_miss": "Frames that the network card missed.",
    "rx_errors": "Frames that arrived damaged.",
    "rx_no_buffer": "Frames that VPP had no free buffer for.",
    "tx_errors": "Frames that could not be sent.",
    "no_such_tunnel": "Packets for a tunnel that the router does not have.",
    "fragments_sent": "Fragments that the router sent.",
    "reassembled": "Packets to the router that it reassembled.",
    "reassembly_failed": "Packets to the router that it could not reassemble.",
    "buffers": "VPP's buffers, in all pools.",
    "buffers_free": "The lowest number of free buffers.",
}


def _series(columns: tuple[str, ...], **more: Any) -> dict[str, Any]:
    count = {"type": ["integer", "null"], "minimum": 0}
    totals = {column: {**count, "description": _MEANINGS[column]} for column in columns}
    members = {
        **more,
        "columns": {"type": "array", "items": {"enum": list(columns)}},
        "totals": {"type": "object", "required": list(totals), "properties": totals},
        "points": {
            "type": "array",
            "description": "Start of the bucket (epoch seconds), then the columns; null if not counted.",
            "items": {
                "type": "array",
                "items": {"type": ["number", "null"]},
                "minItems": 1 + len(columns),
                "maxItems": 1 + len(columns),
                "example": [1_790_000_100, *([0] * len(columns))],
            },
        },
    }
    return {"type": "object", "required": list(members), "properties": members}


_NAME = {"type": "string", "description": "The name of the interface."}
_LINK = {"type": ["integer", "null"], "description": "The id of the interface's backbone link."}
_STEP = {"type": "integer", "minimum": 1, "description": "Length of a bucket in seconds."}
_SIMULATED = {"type": "boolean", "description": "Whether any value comes from a stand-in for VPP."}


def _response(**members: Any) -> dict[str, Any]:
    members = {"step_s": _STEP, **members, "simulated": _SIMULATED}
    return {"type": "object", "required": list(members), "properties": members}


ROUTER_LOSSES = _response(
    router=_series((*OF_ROUTERS, *BUFFERS)),
    interfaces={"type": "array", "items": _series(OF_INTERFACES, name=_NAME, link=_LINK)},
)
LINK_LOSSES = _response(
    a_side=_series(OF_INTERFACES, name=_NAME),
    z_side=_series(OF_INTERFACES, name=_NAME),
)
