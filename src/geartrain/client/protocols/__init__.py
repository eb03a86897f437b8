"""The protocols of the library: a folder for each, with its client and its worker."""
