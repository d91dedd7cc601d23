"""The docs as a web site: pages from the repository's files, built by a static generator, and checked link by link."""
