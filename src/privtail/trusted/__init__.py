"""The trusted core: the only code that reads records, draws noise or debits a budget."""
