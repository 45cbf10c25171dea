"""The trusted core: the only code that reads records, draws noise or debits a budget.

To be read in this order: `sensitivity` and `means` (the lemma), `kernels` and `contributions`,
`dataset` and `batch` (the questions), `problem` (their bounds), `sensitive`, `opening` and
`mechanisms` (the noise), `curator`, `accountants` and `ledger` (the bill), `records`; beside them
`losses` and `callbacks` (what sees rows before their range is forced).

`smooth` and `cluster` are cores beside it, which it is read without and loads only when they are
asked for: noise in proportion to a smooth sensitivity, and rows on a Dask cluster. What proves
nothing is outside: `privtail.calibration`, `privtail.robust_means` and `privtail.influence`,
`privtail.storage`, `privtail.schema`, `privtail.ledger_texts`.
"""
