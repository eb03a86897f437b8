"""The Python library for programs that submit jobs and run them."""
