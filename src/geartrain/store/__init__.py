"""Durability behind one small contract."""
