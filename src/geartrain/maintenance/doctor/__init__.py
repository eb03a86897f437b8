"""`geartrain doctor`: checks of settings, store, disk and machine, with advice for every problem."""
