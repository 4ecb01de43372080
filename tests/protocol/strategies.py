"""Hypothesis strategies for the values of the protocol, shared by the tests of its modules."""

from __future__ import annotations

from hypothesis import strategies as st

from refmq.protocol.command import LanguageCode, RemotingCommand, SerializeType

int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def commands(serialize_type: SerializeType | None = None) -> st.SearchStrategy[RemotingCommand]:
    """Any command that its own serialization can carry without loss."""
    if serialize_type is None:
        return commands(SerializeType.JSON) | commands(SerializeType.ROCKETMQ)
    languages = st.sampled_from(LanguageCode)
    if serialize_type is SerializeType.JSON:
        return st.builds(
            RemotingCommand,
            code=int32,
            opaque=int32,
            flag=int32,
            language=languages,
            version=int32,
            remark=st.none() | text,
            ext_fields=st.none() | st.dictionaries(text, text, max_size=4),
            body=st.binary(max_size=40),
            serialize_type=st.just(serialize_type),
        )
    # A binary header knows neither an empty string nor an empty map.
    return st.builds(
        RemotingCommand,
        code=int16,
        opaque=int32,
        flag=int32,
        language=languages,
        version=int16,
        remark=st.none() | names,
        ext_fields=st.none() | st.dictionaries(names, names, min_size=1, max_size=4),
        body=st.binary(max_size=40),
        serialize_type=st.just(serialize_type),
    )
