"""One table: privtail's defaults, the published algorithms, peers and hand-written baselines."""
