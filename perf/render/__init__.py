"""Records and analysis as tables, charts, drawings and parts of the docs."""
