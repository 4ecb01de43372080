from __future__ import annotations

from refmq.protocol.bodies import (
    BrokerData,
    JsonStyle,
    TopicRouteData,
    decode_body,
    encode_body,
    route_style,
)
from tests.protocol.bodies.samples import (
    ROUTE,
)


def test_the_three_forms_of_a_route() -> None:
    standard = encode_body(ROUTE).decode()
    assert '"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"}' in standard
    assert '"brokerAddrs":{0:"10.0.0.1:10911",1:' in encode_body(ROUTE, JsonStyle.FASTJSON).decode()
    odd = TopicRouteData(
        broker_datas=(BrokerData(cluster="Köln/1 \U0001f600", broker_name="b", broker_addrs={1: "b", 0: "a"}),)
    )
    ascii_form = encode_body(odd, JsonStyle.ASCII).decode()
    assert '"brokerAddrs":{"0":"a","1":"b"}' in ascii_form
    assert '"cluster":"K\\u00F6ln\\/1 \\uD83D\\uDE00"' in ascii_form
    for style in JsonStyle:
        assert decode_body(TopicRouteData, encode_body(odd, style)) == odd
    assert route_style(317) is JsonStyle.FASTJSON
    assert route_style(317, accept_standard_json_only=True) is route_style(401) is JsonStyle.ASCII
