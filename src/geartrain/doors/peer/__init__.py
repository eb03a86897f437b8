"""The door for the other servers of a cluster: links over which jobs are lent and borrowed."""
