"""The codecs of `wire/`, one module per protocol: what they are fed, and how what they read is compared."""
