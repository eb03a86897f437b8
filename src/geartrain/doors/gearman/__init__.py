"""The Gearman door: compatible with gearmand, binary and text on one port."""
