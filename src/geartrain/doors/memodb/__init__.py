"""The MemoDB door: NNG requests and replies with CBOR headers."""
