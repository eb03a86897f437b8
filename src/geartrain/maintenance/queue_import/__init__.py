"""Jobs that another server wrote to disk, read and added to a store of ours."""
