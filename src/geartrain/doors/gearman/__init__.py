"""The Gearman door: a drop-in for gearmand, binary and admin text on one port."""
