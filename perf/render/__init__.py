"""Pages made of records: the parts of the docs that are generated, the report, the twin pages and the site."""
