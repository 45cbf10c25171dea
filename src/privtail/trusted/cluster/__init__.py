"""Records on a Dask cluster: the same questions, answered by workers, with the same bits."""
