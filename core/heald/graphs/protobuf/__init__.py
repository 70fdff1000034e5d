"""Protobuf: the text form's fields and scalars, and TensorFlow's messages. The wire format is `runtime/values/wire`.

Readers work in place: they copy no field and allocate nothing for a length that a file claims. In the binary form every
malformed byte is a DataLoss with its offset. Importing the room loads no protobuf package; only `descriptor_pool` loads
it, when a message class is first asked for. TensorFlow's messages are in a private pool, so heald and tensorflow can
share a process.

`text_scalars`: Numbers, names and strings of the text form, as bytes of the wire.
`text_fields`: Message types as the parser of the text form needs them.
`descriptor_pool`: The table of TensorFlow's messages, and their classes.
"""

from typing import TYPE_CHECKING

from ...runtime.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .descriptor_pool import definitions as definitions
    from .descriptor_pool import make_pool as make_pool
    from .descriptor_pool import message_class as message_class
    from .descriptor_pool import parse_message as parse_message

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".descriptor_pool": ("definitions", "make_pool", "message_class", "parse_message"),
    })
