"""How the default's error changes when a part or a number of it is changed."""
