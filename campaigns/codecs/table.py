"""All codecs by name."""

from campaigns.codecs import danga, event_stream, gearman, memodb, periodic, resp
from campaigns.codecs.codec import Codec

CODECS: dict[str, Codec] = {
    codec.name: codec for module in (gearman, danga, periodic, memodb, resp, event_stream) for codec in module.CODECS
}
