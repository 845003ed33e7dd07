"""Tools around Espalier that need Python: reference vectors (golden)."""
