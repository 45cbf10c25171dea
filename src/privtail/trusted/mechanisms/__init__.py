"""Ways to open a sensitive value: additive noise, selection, label discovery."""
